"""The Launch region."""

from mtpdoctor.tui.launch.region import LaunchRegion

__all__ = ["LaunchRegion"]

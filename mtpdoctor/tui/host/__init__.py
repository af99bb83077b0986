"""The Host region."""

from mtpdoctor.tui.host.region import HostRegion

__all__ = ["HostRegion"]

"""The Fix region."""

from mtpdoctor.tui.fix.region import FixRegion

__all__ = ["FixRegion"]

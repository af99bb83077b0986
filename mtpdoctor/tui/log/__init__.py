"""The Log region."""

from mtpdoctor.tui.log.region import LogRegion

__all__ = ["LogRegion"]

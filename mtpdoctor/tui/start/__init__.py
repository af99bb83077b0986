"""The first screen: what there is to look at."""

from mtpdoctor.tui.start.region import StartRegion

__all__ = ["StartRegion"]

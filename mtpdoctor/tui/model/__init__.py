"""The Model region."""

from mtpdoctor.tui.model.region import ModelRegion

__all__ = ["ModelRegion"]

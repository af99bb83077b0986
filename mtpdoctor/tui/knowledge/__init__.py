"""The Knowledge region."""

from mtpdoctor.tui.knowledge.region import KnowledgeRegion

__all__ = ["KnowledgeRegion"]

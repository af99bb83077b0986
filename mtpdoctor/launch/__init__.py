"""Launch commands in every form people write them, and edits to them. See docs/architecture.md."""

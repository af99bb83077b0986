"""Readers of the forms a launch is written in; see docs/architecture.md."""

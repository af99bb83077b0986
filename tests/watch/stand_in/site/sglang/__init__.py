"""A test double of SGLang: see README.md beside this folder."""

__version__ = "0.5.13.post1"

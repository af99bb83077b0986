"""mtpdoctor: root cause and proven fix for SGLang servers that do not start."""

__version__ = "0.1.0"

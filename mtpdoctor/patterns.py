"""Regular expressions that are compiled when they are first used.

A run needs few of the patterns that the doctor knows, and compiling them all would take longer than
reading a small log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:
    import re

    def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """A pattern that is compiled at its first use."""
        ...

else:
    from mtpdoctor.compiled import compile_kept

    class lazy:
        def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
            self._source = (pattern, flags)

        def __getattr__(self, name: str) -> Any:
            compiled = compile_kept(*self._source)
            for method in ("search", "match", "fullmatch", "sub", "findall", "finditer", "split", "pattern"):
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)

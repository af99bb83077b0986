"""The rest of a path that is being typed."""

from __future__ import annotations

import os

from textual.suggester import Suggester

_MOST = 2000  # names of a folder that are looked at


class PathSuggester(Suggester):
    """Suggests the first name of the folder that begins as typed: folders, and files of any kind."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        return completed(value)


def completed(value: str) -> str | None:
    """``value`` with its last word completed; None where nothing begins so."""
    head, space, word = value.rpartition(" ")
    folder, typed = os.path.split(os.path.expanduser(word))
    if not typed:
        return None
    names: list[str] = []
    try:
        with os.scandir(folder or ".") as entries:
            for i, entry in enumerate(entries):
                if i >= _MOST:
                    break
                if entry.name.startswith(typed) and entry.name != typed:
                    names.append(entry.name + ("/" if entry.is_dir() else ""))
    except OSError:
        return None
    if not names:
        return None
    first = min(names, key=lambda name: (name.startswith("."), name))
    return head + space + word + first[len(typed) :]

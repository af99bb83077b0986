"""Secrets taken out of a text while a person edits it, and put back afterwards. No Textual here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mtpdoctor.redact import MASK, mask_secrets


@dataclass(frozen=True, slots=True)
class Hidden:
    """``text`` with every secret replaced by a word of its own, ``<hidden>``, ``<hidden-2>`` ..."""

    text: str
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # (word, secret)

    def revealed(self, text: str) -> str:
        """An edited ``text`` with the secrets back in the places of their words."""
        known = dict(self.secrets)
        if not known:
            return text
        words = "|".join(re.escape(word) for word in sorted(known, key=len, reverse=True))
        return re.sub(words, lambda m: known[m[0]], text)


def hide(text: str) -> Hidden:
    """``text`` as it may stand on a screen. A text that holds such a word itself keeps it, and its own secrets
    get words that it does not hold."""
    pieces = mask_secrets(text).split(MASK)
    whole = re.fullmatch("(.*?)".join(re.escape(piece) for piece in pieces), text, re.DOTALL)
    if whole is None or len(pieces) == 1:
        return Hidden(text)
    out = [pieces[0]]
    secrets: list[tuple[str, str]] = []
    number = 0
    for secret, piece in zip(whole.groups(), pieces[1:], strict=True):
        if secret == MASK:  # a mask that somebody pasted
            out += [MASK, piece]
            continue
        word = next((w for w, s in secrets if s == secret), None)
        while word is None:
            number += 1
            candidate = MASK if number == 1 else f"{MASK[:-1]}-{number}>"
            word = candidate if candidate not in text else None
        secrets.append((word, secret))
        out += [word, piece]
    return Hidden("".join(out), tuple(dict.fromkeys(secrets)))

"""Which GPUs a launch would see: ``CUDA_VISIBLE_DEVICES`` and its relatives, as the driver reads them."""

from __future__ import annotations

from collections.abc import Sequence


def chosen(setting: str | None, numbered: int, uuids: Sequence[str | None]) -> tuple[int, ...] | None:
    """The places of the GPUs that the setting names, in its order.

    ``uuids`` are those of all GPUs and parts of GPUs; the first ``numbered`` of them can be named by their
    place too, and are what one sees without a setting. As the driver reads it: entries up to the first that
    names no GPU; a UUID (``GPU-8f2c...``, ``MIG-...``) may be cut short as long as one alone begins so; a
    GPU named twice makes the whole setting void. None when a UUID is asked for and one is not known.
    """
    if setting is None:
        return tuple(range(numbered))
    places: list[int] = []
    for entry in setting.split(","):
        word = entry.strip()
        if word.upper().startswith(("GPU-", "MIG-")):
            if any(u is None for u in uuids):
                return None
            fits = [i for i, u in enumerate(uuids) if u is not None and u.upper().startswith(word.upper())]
            if len(fits) != 1:
                break
            places.append(fits[0])
        elif word.isascii() and word.isdigit() and len(word) < 6 and int(word) < numbered:
            places.append(int(word))
        else:
            break
    return tuple(places) if len(set(places)) == len(places) else ()

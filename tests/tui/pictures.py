"""Makes the pictures of docs/interactive.md anew: `PYTHONPATH=.:tests python tests/tui/pictures.py`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from still import FAILED, app_of, settled

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE = (130, 36)
SCREENS: dict[str, tuple[str, ...]] = {
    "diagnosis": ("2",),
    "log": ("3", "c"),
    "fix": ("4",),
    "edit": ("4", "i", "space", *"--max-mam"),
}


async def _picture(keys: tuple[str, ...]) -> str:
    app = app_of(FAILED, theme="dark")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)
        return app.export_screenshot()


def main() -> None:
    for name, keys in SCREENS.items():
        (IMAGES / f"{name}.svg").write_text(asyncio.run(_picture(keys)) + "\n", encoding="utf-8")
        print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()

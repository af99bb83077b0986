"""Light, dark and high contrast. ``NO_COLOR`` is honoured by Textual itself."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="doctor-dark",
    primary="#5fa8e8",
    secondary="#7f9bb3",
    accent="#e8b45f",
    warning="#e8b45f",
    error="#f2777a",
    success="#7fc98a",
    foreground="#dfe3e8",
    background="#14181d",
    surface="#1a1f26",
    panel="#252c35",
    dark=True,
    variables={
        "text-muted": "#98a4b0",
        "text-disabled": "#6d7884",
        "footer-key-foreground": "#e8b45f",
        "border": "#3a4450",
    },
)
LIGHT = Theme(
    name="doctor-light",
    primary="#14619e",
    secondary="#4a6378",
    accent="#8a5300",
    warning="#8a5300",
    error="#b3242c",
    success="#1c6e2f",
    foreground="#1b1f24",
    background="#fbfbf9",
    surface="#f3f3ef",
    panel="#e4e5e0",
    dark=False,
    variables={
        "text-muted": "#565f68",
        "text-disabled": "#7d858c",
        "footer-key-foreground": "#8a5300",
        "border": "#b9bcb4",
    },
)
HIGH_CONTRAST = Theme(
    name="doctor-high-contrast",
    primary="#6fd3ff",
    secondary="#ffffff",
    accent="#ffff00",
    warning="#ffff00",
    error="#ff8080",
    success="#00ff7f",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    dark=True,
    text_alpha=1.0,
    variables={
        "text-muted": "#e0e0e0",
        "text-disabled": "#c0c0c0",
        "block-cursor-background": "#ffff00",
        "block-cursor-foreground": "#000000",
        "footer-key-foreground": "#ffff00",
        "border": "#ffffff",
    },
)
THEMES = {"dark": DARK, "light": LIGHT, "high-contrast": HIGH_CONTRAST}

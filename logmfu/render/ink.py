"""Sizes, fonts and settings of the picture, and text its font can draw."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

from logmfu.render.escape import visible

SIZE = (12.0, 6.75)
"""Inches; 960 x 540 points of a ticket's page."""
DPI = 160
"""Pixels per inch of the PNG: twice what it is shown at."""
FAMILY = "DejaVu Sans"
STYLE: dict[str, Any] = {
    "font.family": [FAMILY],
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "axes.grid": False,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8.5,
    "legend.labelspacing": 0.45,
    "svg.hashsalt": "logmfu",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "path.simplify": True,
    "agg.path.chunksize": 20_000,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "savefig.facecolor": "white",
    "timezone": "UTC",
}
"""Settings of matplotlib while a picture is made."""


@cache
def _drawable_codes() -> frozenset[int]:
    """Characters of the font that matplotlib brings along."""
    path = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return frozenset(FT2Font(str(path)).get_charmap())


def drawable(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters the font can draw; one it lacks is a question mark."""
    shown = visible(text[: 2 * limit])
    if len(shown) > limit:
        shown = f"{shown[: limit - 1]}…"
    return "".join(character if ord(character) in _drawable_codes() else "?" for character in shown)

"""The quick way through a log: touch only the lines that can matter, read equal lines as columns.

``logmfu.reading`` runs the rules over every line; that engine is the reference. Here the same rules
see the same lines with all those left out that cannot change anything:

- a block of bytes is scanned for every needle at once, and only lines with one are decoded (``scan``);
- lines that differ in their digits alone are read as columns of numbers (``layout``, ``columns``), and where most of a
  block is such lines, they are found by their shape before anything is scanned (``alike``);
- columns go to the tables as they are, or, where the parser looks at records in their order, as those (``plan``, ``replay``);
- while a block of lines is open, every line is fed (``feed``);
- stamps of lines that were left out are looked up when something asks for them (``stamps``);
- where a line cannot be judged by itself, the rest of its file goes the reference way.

The tables come out the same; a property test says so.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec


@cache
def available() -> bool:
    """Whether the scanner is installed: there is none for every platform."""
    return find_spec("hyperscan") is not None

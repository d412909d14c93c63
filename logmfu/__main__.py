"""``python -m logmfu``: the same as ``logmfu``."""

from __future__ import annotations

from logmfu.cli import main

if __name__ == "__main__":
    main()

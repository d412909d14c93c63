"""The command line: one module per command, put together in :mod:`logmfu.cli.app`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an interrupt while it is being loaded is no traceback."""
    try:
        from logmfu.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()

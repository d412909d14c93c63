"""The bar on standard error: on a terminal only, and only when reading takes a while."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from logmfu.cli.progress import progress_bar
from logmfu.source import Source, open_sources


def log(folder: Path) -> Source:
    """A source of 9000 lines."""
    path = folder / "run.log"
    path.write_bytes(b"iteration 1\n" * 9000)
    return open_sources([path])[0]


def test_progress_bar_on_a_terminal(tmp_path):
    """On a terminal a bar appears while a source is read, and is taken away after it."""
    source = log(tmp_path)
    screen = io.StringIO()
    with progress_bar([source], console=Console(file=screen, force_terminal=True), after_s=0):
        list(source.chunks())
    assert "reading" in screen.getvalue()
    assert source.progress is None


@pytest.mark.parametrize(("terminal", "after_s"), [(False, 0), (True, 3600)])
def test_no_progress_bar(tmp_path, terminal, after_s):
    """No terminal, or not long enough: nothing is written."""
    source = log(tmp_path)
    screen = io.StringIO()
    with progress_bar([source], console=Console(file=screen, force_terminal=terminal), after_s=after_s):
        list(source.chunks())
    assert screen.getvalue() == ""

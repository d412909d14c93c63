"""A bar on standard error while logs are read: on a terminal, and only if it takes a while."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from logmfu.source import Source

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


@contextmanager
def progress_bar(
    sources: Sequence[Source], *, console: Console | None = None, after_s: float = 1.0
) -> Iterator[None]:
    """Show how much of the sources was read, from ``after_s`` seconds on; nothing if not on a terminal."""
    from rich.console import Console

    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    bar = _Bar(console, [source.size for source in sources], time.monotonic() + after_s)
    for source in sources:
        source.progress = bar.advance
    try:
        yield
    finally:
        bar.stop()
        for source in sources:
            source.progress = None


class _Bar:
    def __init__(self, console: Console, sizes: Sequence[int | None], show_at: float) -> None:
        known = [size for size in sizes if size is not None]
        self._total = sum(known) if len(known) == len(sizes) else None
        self._console = console
        self._show_at = show_at
        self._done = 0
        self._shown: tuple[Progress, TaskID] | None = None

    def advance(self, count: int) -> None:
        self._done += count
        if not self._shown and time.monotonic() >= self._show_at:
            self._shown = self._start()
        if self._shown:
            progress, task = self._shown
            progress.update(task, completed=self._done)

    def _start(self) -> tuple[Progress, TaskID]:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        progress = Progress(*columns, console=self._console, transient=True)
        progress.start()
        return progress, progress.add_task("reading", total=self._total)

    def stop(self) -> None:
        if self._shown:
            self._shown[0].stop()

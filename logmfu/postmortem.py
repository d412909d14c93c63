"""The post-mortem as files: HTML, Markdown and a plot beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from logmfu.render import files
from logmfu.report import Report


def names(directory: Path, stem: str) -> list[Path]:
    """The files a post-mortem consists of."""
    return [
        directory / f"{stem}.report.html",
        directory / f"{stem}.report.md",
        directory / f"{stem}.mfu.png",
    ]


def write(
    report: Report,
    directory: Path,
    *,
    stem: str,
    force: bool = False,
    dialect: str = "github",
    excerpts: Mapping[tuple[str, int], Sequence[str]] | None = None,
) -> list[Path]:
    """Write the three files and return them. Raises ``OptionError`` when one exists and not ``force``."""
    from logmfu.render import html, markdown, plot

    page, text, picture = names(directory, stem)
    files.refuse_existing([page, text, picture], force=force)
    with files.whole(page) as partial:
        partial.write_text(html.render(report, excerpts), encoding="utf-8")
    with files.whole(text) as partial:
        partial.write_text(markdown.render(report, dialect=dialect), encoding="utf-8")
    with files.whole(picture) as partial:
        plot.save(report, partial)
    return [page, text, picture]

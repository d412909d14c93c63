"""Reports and tables as files: the one table of extensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from logmfu.errors import OptionError, OutputError
from logmfu.report import Report
from logmfu.tables import Run

Writer = Callable[[Report, Run, Path], None]


def _text(make: Callable[[Report, Run], str]) -> Writer:
    def write(report: Report, run: Run, path: Path) -> None:
        path.write_text(make(report, run), encoding="utf-8")

    return write


def _plot(report: Report, run: Run, path: Path) -> None:
    from logmfu.render import plot

    plot.save(report, path)


def _html(report: Report, run: Run) -> str:
    """The page with the lines around each cited one, from the inputs that can be read again."""
    from logmfu.excerpts import excerpts
    from logmfu.render import html
    from logmfu.source import open_sources

    again = [file.path for file in run.inputs if Path(file.path).is_file()]
    return html.render(report, excerpts(report, open_sources(again)) if again else None)


def _json(report: Report, run: Run) -> str:
    return report.to_json()


def _markdown(report: Report, run: Run) -> str:
    return report.to_markdown()


def _csv(report: Report, run: Run) -> str:
    from logmfu.render import table

    return table.csv(run)


def _parquet(report: Report, run: Run, path: Path) -> None:
    from logmfu.render import table

    table.parquet(run, path)


TEXTS: Mapping[str, Callable[[Report, Run], str]] = {
    "json": _json,
    "md": _markdown,
    "csv": _csv,
    "html": _html,
}
"""Outputs that are text, by the name ``--format`` has for them; ``.`` + name is their extension."""
WRITERS: Mapping[str, Writer] = {
    ".png": _plot,
    ".svg": _plot,
    ".pdf": _plot,
    **{f".{name}": _text(make) for name, make in TEXTS.items()},
    ".parquet": _parquet,
}
"""Outputs by the extension of their file."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to that becomes ``path`` when all is written: no file is left half done.

    Raises ``OutputError`` when it cannot be written.
    """
    there = path.resolve()
    partial = there.with_name(f".{there.stem}.partial{there.suffix}")
    if there.exists() and not there.is_file():
        partial = there  # a device or a pipe
    try:
        yield partial
        if partial != there:
            partial.replace(there)
    except OSError as error:
        raise OutputError(f"{path} cannot be written", facts=[error.strerror or str(error)]) from error
    finally:
        if partial != there:
            partial.unlink(missing_ok=True)


def writer(path: Path) -> Writer:
    """The writer for a file name. Raises ``OptionError`` for an extension nobody writes."""
    found = WRITERS.get(path.suffix.lower())
    if found is _parquet and find_spec("pyarrow") is None:
        raise OptionError("writing Parquet needs pyarrow", hint="pip install 'logmfu[parquet]'")
    if found is None:
        raise OptionError(f"the output {path} has no known extension", hint="one of " + ", ".join(WRITERS))
    return found


def refuse_existing(paths: list[Path], *, force: bool) -> None:
    """Raise ``OptionError`` when a file is already there and must not be overwritten."""
    there = [str(path) for path in paths if path.exists()]
    if there and not force:
        exist = "exists" if len(there) == 1 else "exist"
        raise OptionError(f"{', '.join(there)} {exist}", hint="--force overwrites it")

"""``logmfu report``: the post-mortem as files for a ticket."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logmfu.cli.inputs import Paths, load, stems
from logmfu.cli.options import library_options, with_analysis_options
from logmfu.errors import LogmfuError, OptionError, SourceError

if TYPE_CHECKING:
    from logmfu.report import Report


@with_analysis_options
def report(
    paths: Paths,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Where the files go, made if need be; beside the log.")
    ] = None,
    dialect: Annotated[
        str, typer.Option(metavar="github|jira|slack|plain", help="Dialect of the Markdown file.")
    ] = "github",
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace hosts, users, paths and addresses by stand-ins.")
    ] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Every PATH is a run of its own; an index lists them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files of an earlier report.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Do not list the files.")] = False,
    *,
    analysis: dict[str, Any],
) -> None:
    """Write the post-mortem: run.report.html, run.report.md and run.mfu.png beside the log."""
    known = ("github", "jira", "slack", "plain")
    if dialect not in known:
        raise typer.BadParameter(f"{dialect!r} is not one of {', '.join(known)}", param_hint="--dialect")
    groups = [[path] for path in paths] if each else [paths]
    reports, failed = [], False
    for group, stem in zip(groups, stems([group[0] for group in groups], redact=redact), strict=True):
        try:
            reports.append(
                made(
                    group,
                    directory,
                    stem=stem,
                    dialect=dialect,
                    redact=redact,
                    force=force,
                    analysis=analysis,
                )
            )
        except LogmfuError as error:
            if not each or isinstance(error, OptionError):
                raise
            typer.echo(f"{group[0]}: {error}", err=True)
            failed = True
    written = [path for _, files in reports for path in files]
    if each and reports:
        written.append(_index(reports, directory or home(paths), force=force))
    if not quiet:
        for path in written:
            typer.echo(path)
    if failed:
        raise typer.Exit(1)


def home(paths: list[str]) -> Path:
    """The directory a report goes to: that of the log; the current one for standard input and globs."""
    first = Path(paths[0])
    if first.is_dir():
        return first
    return first.parent if first.exists() else Path()


def made(
    paths: list[str],
    directory: Path | None,
    *,
    stem: str,
    dialect: str,
    redact: bool,
    force: bool,
    analysis: dict[str, Any],
) -> tuple[Report, list[Path]]:
    """Read, analyse, write the files; the report as it was shown, and the files."""
    import logmfu
    from logmfu import excerpts, postmortem, redaction
    from logmfu.render import files
    from logmfu.source import open_sources

    place = directory or home(paths)
    if place.exists() and not place.is_dir():
        raise typer.BadParameter(f"{place} is not a directory", param_hint="--dir")
    files.refuse_existing(postmortem.names(place, stem), force=force)
    run = load(paths, parser=analysis["parser"])
    found = logmfu.analyze(run, **library_options(analysis, start=run.start))
    lines: Mapping[tuple[str, int], Sequence[str]] = {}
    if "-" not in paths:
        lines = excerpts.excerpts(found, open_sources(paths))
    shown = redaction.mask_secrets(found)
    if redact:
        shown, lines, replaced = redaction.redact_with(found, lines)
        for entry in replaced:
            typer.echo(f"replaced {entry.kind} {entry.original} by {entry.alias}", err=True)
    _make(place)
    return shown, postmortem.write(shown, place, stem=stem, force=force, dialect=dialect, excerpts=lines)


def _make(place: Path) -> None:
    """Make the directory of a report, if it is not there."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"{place} cannot be made", facts=[error.strerror or str(error)]) from error


def _index(reports: list[tuple[Report, list[Path]]], place: Path, *, force: bool) -> Path:
    from logmfu.render import files, html

    path = place / "index.report.html"
    files.refuse_existing([path], force=force)
    index = html.render_index([(found, written[0].name) for found, written in reports])
    with files.whole(path) as partial:
        partial.write_text(index, encoding="utf-8")
    return path

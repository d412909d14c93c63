"""``logmfu analyze``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logmfu.cli.inputs import Paths, colours, load, stems, terminal_width
from logmfu.cli.options import library_options, with_analysis_options
from logmfu.errors import LogmfuError

if TYPE_CHECKING:
    from logmfu.report import Report
    from logmfu.tables import Run

GATE = 3


@with_analysis_options
def analyze(
    paths: Paths,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write more: .png .svg .pdf plot; .html .md .json report; .csv .parquet steps. Repeatable; - with --format.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="json|md|csv|html", help="What `-o -` writes to standard output."),
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="Every PATH is a run of its own.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing output files.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No summary.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Every stall, incident and suspect.")
    ] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
    *,
    analysis: dict[str, Any],
) -> None:
    """Read the log of a run, account for its time, and print a summary.

    Exit codes: 0 done, 1 could not be done, 2 wrong usage, 3 a gate tripped, 130 interrupted.
    """
    to_stdout, files = _outputs(outputs or [], form)
    _check(files, force=force)
    tripped = failed = False
    groups = [[path] for path in paths] if each else [paths]
    for group, stem in zip(groups, stems([group[0] for group in groups]), strict=True):
        try:
            report = _one(
                group, _named(files, stem) if each else files, to_stdout, force=force, analysis=analysis
            )
        except LogmfuError as error:
            if not each:
                raise
            typer.echo(f"{group[0]}: {error}", err=True)
            failed = True
            continue
        if not (to_stdout or quiet):
            _summary(report, verbose=verbose, no_color=no_color)
        tripped |= bool(report.tripped)
        for gate in report.tripped if to_stdout or quiet else ():
            typer.echo(f"gate: {gate}", err=True)
    if failed or tripped:
        raise typer.Exit(1 if failed else GATE)


def _one(
    group: list[str],
    files: list[Path],
    to_stdout: str | None,
    *,
    force: bool,
    analysis: dict[str, Any],
) -> Report:
    """Read and analyse one run, and write what was asked for."""
    run = load(group, parser=analysis["parser"])
    report = _analyze(run, analysis)
    _write(report, run, files, force=force)
    if to_stdout:
        typer.echo(_text(to_stdout, report, run), nl=False)
    return report


def _analyze(run: Run, analysis: dict[str, Any]) -> Report:
    import logmfu
    from logmfu.redaction import mask_secrets

    return mask_secrets(logmfu.analyze(run, **library_options(analysis, start=run.start)))


def _outputs(outputs: list[str], form: str | None) -> tuple[str | None, list[Path]]:
    """The format for standard output, if any, and the files."""
    wants = "-" in outputs or (form is not None and not outputs)
    known = ("json", "md", "csv", "html")
    if form is not None and form not in known:
        raise typer.BadParameter(f"{form!r} is not one of {', '.join(known)}", param_hint="--format")
    if wants and form is None:
        raise typer.BadParameter("`-o -` needs --format json, md, csv or html", param_hint="-o")
    return (form if wants else None), [Path(name) for name in outputs if name != "-"]


def _check(files: list[Path], *, force: bool) -> None:
    """Refuse what cannot be written before a long log is read."""
    if not files:
        return
    from logmfu.render import files as writers

    for path in files:
        writers.writer(path)
        if not path.parent.is_dir():
            raise typer.BadParameter(f"there is no directory {path.parent}", param_hint="-o")
    writers.refuse_existing(files, force=force)


def _named(files: list[Path], stem: str) -> list[Path]:
    """Output names of one run of several: its name is put into them."""
    return [path.with_name(f"{path.stem}-{stem}{path.suffix}") for path in files]


def _write(report: Report, run: Run, files: list[Path], *, force: bool) -> None:
    from logmfu.render import files as writers

    writers.refuse_existing(files, force=force)
    for path in files:
        write = writers.writer(path)
        with writers.whole(path) as partial:
            write(report, run, partial)
        typer.echo(f"wrote {path}", err=True)


def _text(form: str, report: Report, run: Run) -> str:
    from logmfu.render import files as writers

    return writers.TEXTS[form](report, run)


def _summary(report: Report, *, verbose: bool, no_color: bool) -> None:
    import sys

    from logmfu.render import terminal

    colour = colours(no_color)
    text = terminal.render(
        report, width=terminal_width(), colour=colour, verbose=verbose, plot=sys.stdout.isatty()
    )
    typer.echo(text, nl=False, color=colour)

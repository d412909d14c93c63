"""``logmfu attach``: the post-mortem and its plot onto a ticket."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from logmfu.cli.inputs import stems
from logmfu.cli.options import with_analysis_options
from logmfu.cli.report import home, made

if TYPE_CHECKING:
    from logmfu import tickets


@with_analysis_options
def attach(
    ticket: Annotated[
        str, typer.Argument(metavar="TICKET", help="A key, an address, or one of the forms below.")
    ],
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="The logs of one run.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show every request that would be sent, and send nothing.")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files/--no-files", help="With the files, or the text alone.")
    ] = True,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Where the files go, made if need be; beside the log.")
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds to wait for an answer.")
    ] = 60.0,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace hosts, users, paths and addresses by stand-ins.")
    ] = False,
    *,
    analysis: dict[str, Any],
) -> None:
    """Write the post-mortem of a run and put it onto a ticket; again replaces it there, and the files here.

    Tickets:

    \b
      ABC-123                  Jira      also https://HOST/browse/ABC-123
      group/project!34         GitLab    also gitlab:group/project#12, or the address
      github:owner/repo#12     GitHub    or the address of an issue or pull request
      slack:C0123ABCD          Slack     or the link of a message: its thread
      webhook                  any JSON receiver; also webhook:https://HOST/...

    Each needs its client library: pip install 'logmfu[jira]', 'logmfu[gitlab]', 'logmfu[github]',
    'logmfu[slack]', 'logmfu[webhook]'.

    Credentials come from the environment or the keyring, and go to the host of the URL alone:

    \b
      LOGMFU_JIRA_URL      LOGMFU_JIRA_TOKEN      LOGMFU_JIRA_EMAIL (Cloud)
      LOGMFU_GITLAB_URL    LOGMFU_GITLAB_TOKEN    (https://gitlab.com)
      LOGMFU_GITHUB_URL    LOGMFU_GITHUB_TOKEN    (https://github.com)
      LOGMFU_SLACK_URL     LOGMFU_SLACK_TOKEN     (https://slack.com)
      LOGMFU_WEBHOOK_URL   LOGMFU_WEBHOOK_TOKEN   (both optional)
      LOGMFU_ALLOW_HTTP=1  accepts http:// for hosts other than this machine

    \b
    In the keyring: keyring set logmfu-jira HOST   (logmfu-gitlab, ...)
    """  # noqa: D301 - the control character keeps the lines below it as they are
    from logmfu import tickets

    target = tickets.find(ticket, os.environ)
    if not dry_run:
        tickets.check(target, os.environ)
    with _place(directory, paths, keep=not dry_run) as place:
        parcel = packed(paths, place, redact=redact, analysis=analysis)
        send(parcel if files else replace(parcel, files=()), target, dry_run=dry_run, timeout_s=timeout_s)


@contextmanager
def _place(directory: Path | None, paths: list[str], *, keep: bool) -> Iterator[Path]:
    """Where the files go; those of a dry run go away again."""
    if keep:
        yield directory or home(paths)
        return
    with TemporaryDirectory(prefix="logmfu-") as temporary:
        yield Path(temporary)


def packed(paths: list[str], place: Path, *, redact: bool, analysis: dict[str, Any]) -> tickets.Parcel:
    """The parcel of a run: read, analyze, write the files, over those of an earlier time."""
    from logmfu.tickets import Parcel

    [stem] = stems(paths[:1], redact=redact)
    report, written = made(
        paths, place, stem=stem, dialect="github", redact=redact, force=True, analysis=analysis
    )
    return Parcel(
        title=f"Training run {report.name}",
        body_by_dialect=lambda dialect: report.to_markdown(dialect=dialect),
        files=tuple(written),
        key=f"{report.name} {report.start}",
    )


def send(parcel: tickets.Parcel, target: tickets.Target, *, dry_run: bool, timeout_s: float) -> None:
    """Send a parcel and print where it is, or print what would be sent."""
    from logmfu import tickets

    if dry_run:
        from logmfu.tickets import transcript

        typer.echo(transcript.render(tickets.rehearse(parcel, target, environ=os.environ), os.environ))
        return
    sent = tickets.deliver(parcel, target, environ=os.environ, timeout_s=timeout_s)
    for note in sent.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{'updated' if sent.updated else 'attached'}: {sent.url}")

"""All commands as one program.

Nothing heavy is imported here or at the top of a command's module: ``--help`` has to be quick.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Annotated

import typer

import logmfu
from logmfu.cli.analyze import analyze
from logmfu.cli.attach import attach
from logmfu.cli.explain import explain
from logmfu.cli.flops import flops
from logmfu.cli.interrupts import Interrupts
from logmfu.cli.parsers import parsers
from logmfu.cli.peaks import peaks
from logmfu.cli.report import report
from logmfu.cli.schema import schema
from logmfu.errors import LogmfuError, OptionError

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

app = typer.Typer(
    name="logmfu",
    help="Read the log of a training run: how well the accelerators were used, and where the time went.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (analyze, report, attach, explain, flops, peaks, parsers, schema):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"logmfu {logmfu.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read the log of a training run: how well the accelerators were used, and where the time went."""


def main() -> None:
    """Run the command line; every error made on purpose becomes a message, and exit code 1 or, for usage, 2."""
    # What is made while modules are loaded stays: looking for garbage among it costs a fifth of a short
    # command, half of that at the very end.
    gc.set_threshold(100_000, 50, 100)
    atexit.register(gc.freeze)
    # numpy starts a thread for each processor, for matrices that are not there; they take time from what reads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    interrupts = Interrupts()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit:
        if interrupts.seen:
            sys.exit(INTERRUPTED)
        raise
    except LogmfuError as error:
        typer.echo(str(error), err=True)
        sys.exit(2 if isinstance(error, OptionError) else 1)
    except BrokenPipeError:
        # The reader (head, less) went away: that is its right. Python would complain at exit.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.filename is not None:
            raise
        typer.echo(f"error: standard output cannot be written\n  {error.strerror}", err=True)
        os._exit(1)  # what is left of it cannot be written at the end either
    except MemoryError:
        typer.echo("error: there is not enough memory for this log", err=True)
        sys.exit(1)

"""The command line as a person meets it: real processes, their outputs and exit codes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

import logmfu
from logmfu.cli.inputs import stems
from logmfu.errors import OutputError
from logmfu.render import files

ROOT = Path(__file__).parent.parent
LOG = ROOT / "fixtures" / "megatron" / "0.12-64gpu-hang-restart.log"
OTHER = ROOT / "fixtures" / "megatron" / "2.5-64gpu-crash-resume.log"
PROGRAM = Path(sys.executable).parent / "logmfu"
H100 = ("--gpu", "H100 SXM")


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path):
    """Run ``logmfu`` in an empty folder, without a terminal."""

    def command(*arguments: object, stdin: bytes = b"", **environ: str) -> Done:
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            cwd=tmp_path,
            env={**environment(), **environ},
            input=stdin,
            capture_output=True,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return command


def environment() -> dict[str, str]:
    """The variables of this process, without those that change what is printed."""
    unwanted = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "LOGMFU_", "PYTHONWARNINGS")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def test_the_package_is_the_program():
    """``python -m logmfu`` does what ``logmfu`` does."""
    done = subprocess.run([sys.executable, "-m", "logmfu", "--version"], capture_output=True, text=True)
    assert done.stdout == f"logmfu {logmfu.__version__}\n"


def test_main_job_prints_a_summary_and_nothing_else(run):
    """The first lines say what run, how long, how well used, what went wrong; standard error stays empty."""
    done = run("analyze", LOG, *H100)
    assert (done.code, done.err) == (0, "")
    head = done.out.splitlines()[:3]
    assert head[0].startswith("0.12-64gpu-hang-restart.log · Megatron-LM · 64 x H100 SXM5 · bf16")
    assert "2 attempts" in " ".join(head)
    assert "41.1 % good" in done.out
    assert "hang" in done.out


def test_no_colour_and_no_bar_without_a_terminal(run):
    """Piped output is plain text, whatever the terminal is called."""
    done = run("analyze", LOG, *H100, TERM="xterm-256color")
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize("width", [60, 80])
def test_summary_keeps_to_the_width(run, width: int):
    """No line is wider than the terminal."""
    done = run("analyze", LOG, *H100, "-v", COLUMNS=str(width))
    assert max(map(len, done.out.splitlines())) <= width


@pytest.mark.parametrize("option", ["--version", "--help", "-h"])
def test_version_and_help(run, option: str):
    """They answer on standard output."""
    done = run(option)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("logmfu 0." if option == "--version" else "Usage: logmfu")


def test_shell_completion_works(run):
    """The script for the shell is printed, and what it asks for is answered: commands and options."""
    script = run(_LOGMFU_COMPLETE="source_bash")
    assert script.code == 0
    assert "complete -o" in script.out
    command = run(_LOGMFU_COMPLETE="complete_bash", COMP_WORDS="logmfu ana", COMP_CWORD="1")
    assert command.out.split() == ["analyze"]
    option = run(_LOGMFU_COMPLETE="complete_bash", COMP_WORDS="logmfu analyze --min", COMP_CWORD="2")
    assert option.out.split() == ["--min-mfu"]


CANNOT = {
    "missing.log": "there is no file missing.log",
    "*.nothing": "no file matches *.nothing",
    "empty.log": "empty.log is empty",
    "binary.log": "binary.log is not text",
    "poem.log": "no parser understands this log",
    "folder": "no log in the directory folder",
}


@pytest.mark.parametrize("path", CANNOT)
def test_bad_input_is_one_clear_error(run, tmp_path: Path, path: str):
    """Exit code 1, one error on standard error, nothing on standard output."""
    (tmp_path / "empty.log").touch()
    (tmp_path / "binary.log").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)
    (tmp_path / "poem.log").write_text("roses are red\n" * 50)
    (tmp_path / "folder").mkdir()
    done = run("analyze", path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {CANNOT[path]}")
    assert done.err.count("error:") == 1
    assert "Traceback" not in done.err


def test_file_that_may_not_be_read(run, tmp_path: Path):
    """No permission is an error that says so."""
    locked = tmp_path / "locked.log"
    locked.write_bytes(LOG.read_bytes())
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything")
    done = run("analyze", locked)
    assert done.code == 1
    assert "permission" in done.err.lower()


USAGE = {
    "no path": (),
    "unknown option": (LOG, "--bogus"),
    "unknown format": (LOG, "-o", "-", "--format", "xml"),
    "no format": (LOG, "-o", "-"),
    "no directory": (LOG, "-o", "nowhere/out.json"),
    "attention": (LOG, "--attention", "most"),
    "since": (LOG, "--since", "yesterday"),
    "zone of a bound": (LOG, "--since", "2026-03-04T02:40:00+02:00"),
    "percent": (LOG, "--min-mfu", "50"),
    "no fact": (LOG, "--set", "colour=red"),
    "no value": (LOG, "--set", "world_size"),
    "zone": (LOG, "--timezone", "Mars/Olympus"),
    "bands": (LOG, "--grade-bands", "25,40,55"),
    "negative peak": (LOG, "--peak-tflops", "-5"),
    "no devices": (LOG, "--world-size", "0"),
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_wrong_usage_is_exit_code_2(run, arguments):
    """The message names the option; the log is not summarised."""
    done = run("analyze", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "Usage: logmfu analyze" in done.err
    assert "Traceback" not in done.err


REFUSED = {
    "extension": (("-o", "out.xyz"), "no known extension"),
    "kind": (("--fail-on", "hung"), "knows no hung"),
    "parser": (("--parser", "nonsense"), "no parser called 'nonsense'"),
}


@pytest.mark.parametrize(("arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refused_values_say_what_is_known(run, arguments, text: str):
    """An unknown name is refused with those that are known."""
    done = run("analyze", LOG, *arguments)
    assert done.code in (1, 2)
    assert done.out == ""
    assert text in done.err


def test_unknown_accelerator_withholds_mfu(run):
    """A name that is not in the table is no guess: no MFU, and the way to give the peak."""
    done = run("analyze", LOG, "--gpu", "Z9000")
    assert done.code == 0
    assert "Z9000" in done.out
    assert "--peak-tflops" in done.out


FORMATS = {
    "plot.png": b"\x89PNG",
    "plot.pdf": b"%PDF",
    "plot.svg": b"<?xml",
    "report.html": b"<!doctype html>",
    "report.md": b"#",
    "report.json": b"{",
    "steps.csv": b"step,",
    "steps.parquet": b"PAR1",
}


def test_every_output_in_one_pass(run, tmp_path: Path):
    """The extension says what is written; each file is announced on standard error, the summary stays on standard output."""
    wanted = [argument for name in FORMATS for argument in ("-o", name)]
    done = run("analyze", LOG, *H100, *wanted)
    assert done.code == 0
    assert done.out.startswith(LOG.name)
    assert done.err.splitlines() == [f"wrote {name}" for name in FORMATS]
    for name, magic in FORMATS.items():
        assert (tmp_path / name).read_bytes().lower().startswith(magic.lower()), name


def test_nothing_is_overwritten_unasked(run, tmp_path: Path):
    """An existing file is left alone, and nothing else is written, until --force."""
    (tmp_path / "b.json").write_text("mine")
    done = run("analyze", LOG, "-q", "-o", "a.json", "-o", "b.json")
    assert done.code in (1, 2)
    assert "b.json exists" in done.err
    assert "--force" in done.err
    assert (tmp_path / "b.json").read_text() == "mine"
    assert not (tmp_path / "a.json").exists()
    assert run("analyze", LOG, "-q", "-o", "a.json", "-o", "b.json", "--force").code == 0
    assert json.loads((tmp_path / "b.json").read_text())["parser"] == "megatron"


@pytest.mark.parametrize("form", ["json", "md", "csv", "html"])
def test_standard_output_holds_only_what_was_asked_for(run, form: str):
    """``-o - --format`` writes the document alone."""
    done = run("analyze", LOG, *H100, "-o", "-", "--format", form)
    assert (done.code, done.err) == (0, "")
    start = {"json": "{", "md": "#", "csv": "step,", "html": "<!doctype html>"}[form]
    assert done.out.lower().startswith(start)


def test_command_and_library_give_the_same_numbers(run):
    """JSON of the command and of the library are equal, and so are the step tables."""
    read = logmfu.read(LOG)
    said = json.loads(run("analyze", LOG, *H100, "--format", "json").out)
    assert said == json.loads(logmfu.analyze(read, gpu="H100 SXM").to_json())
    table = pd.read_csv(StringIO(run("analyze", LOG, "--format", "csv").out))
    for name in ("step", "step_time_s", "throughput_per_gpu_tflops", "loss", "attempt", "line"):
        assert table[name].tolist() == read.steps[name].tolist()


def test_standard_input_plain_and_compressed(run):
    """``-`` reads a pipe; compression is known by content."""
    plain = run("analyze", "-", *H100, "--format", "csv", stdin=LOG.read_bytes())
    packed = run("analyze", "-", *H100, "--format", "csv", stdin=gzip.compress(LOG.read_bytes()))
    assert plain == packed
    assert plain.out.count("\n") == 65


def test_one_log_that_nobody_understands_stops_no_other_report(run, tmp_path: Path):
    """With --each the others are written, into a folder that is made for them, and the exit code is 1."""
    (tmp_path / "notes.log").write_text("nothing of a training run\n")
    done = run("report", "notes.log", LOG, "--each", "--dir", "out/reports")
    assert done.code == 1
    assert done.err.startswith("notes.log: error: no parser understands this log")
    names = {path.name for path in (tmp_path / "out" / "reports").iterdir()}
    assert names == {
        "0.12-64gpu-hang-restart.report.html",
        "0.12-64gpu-hang-restart.report.md",
        "0.12-64gpu-hang-restart.mfu.png",
        "index.report.html",
    }


def test_each_path_is_a_run_of_its_own(run, tmp_path: Path):
    """With --each there are as many summaries and files as paths, and the files carry the runs' names."""
    done = run("analyze", LOG, OTHER, "--each", "-o", "out.json")
    assert done.code == 0
    assert done.out.count("Where the time went") == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"out-0.12-64gpu-hang-restart.json", "out-2.5-64gpu-crash-resume.json"}


def steps_of(done: Done) -> dict[str, int]:
    """Count, first and last step of a JSON report."""
    steps = json.loads(done.out)["steps"]
    return {name: steps[name] for name in ("count", "first", "last")}


def test_window_by_step_and_by_time(run):
    """--since and --until cut by step number or by the log's clock."""
    by_step = run("analyze", LOG, "--since", "500", "--until", "560", "--format", "json")
    assert steps_of(by_step) == {"count": 7, "first": 500, "last": 560}
    by_time = run("analyze", LOG, "--until", "2026-03-04T01:56:00", "--format", "json")
    assert steps_of(by_time) == {"count": 3, "first": 10, "last": 30}


def test_facts_are_given_by_option(run):
    """--set states what the log lacks; the report says where it is from."""
    done = run("analyze", OTHER, "--peak-tflops", "312", "--set", "run_name=blue", "--format", "json")
    report = json.loads(done.out)
    assert report["run"]["run_name"] == "blue"
    assert report["mfu"]["peak_tflops"] == 312.0
    assert [fact["how"] for fact in report["facts"] if fact["name"] == "run_name"] == ["option"]


GATES = {
    "mfu high enough": (("--min-mfu", "0.40", *H100), 0),
    "mfu too low": (("--min-mfu", "45%", *H100), 3),
    "mfu not known": (("--min-mfu", "45%"), 3),
    "hang": (("--fail-on", "hang"), 3),
    "one of two": (("--fail-on", "oom,nccl_timeout"), 3),
    "nothing of the kind": (("--fail-on", "oom,nan"), 0),
}


@pytest.mark.parametrize(("arguments", "code"), GATES.values(), ids=GATES)
def test_gates_are_exit_code_3(run, tmp_path: Path, arguments, code: int):
    """A gate that trips says so, after the outputs are written."""
    done = run("analyze", LOG, *arguments, "-q", "-o", "report.json")
    assert (done.code, done.out) == (code, "")
    assert ("gate: " in done.err) == (code == 3)
    assert bool(json.loads((tmp_path / "report.json").read_text())["gates"]) == (code == 3)


def test_interrupt_is_exit_code_130():
    """Ctrl-C ends the work without a traceback."""
    process = subprocess.Popen(
        [PROGRAM, "analyze", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell's background jobs ignore interrupts, and so would what the tests start there.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    # More than a pipe holds: when this returns, the program is reading.
    process.stdin.write(LOG.read_bytes() * 40)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    process.stdin = None
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


LOST = """
import _thread, sys
from logmfu.cli import app

class Held:
    def __del__(self):
        _thread.interrupt_main()
        for _ in range(1000):
            len("the interrupt is raised in here, where nobody can catch it")

def work():
    held = Held()
    del held
    while True:
        len("going on")

app.app = work
app.main()
"""


def test_interrupt_that_a_finalizer_swallows_comes_again():
    """Ctrl-C in a finalizer is dropped by Python: the program must not go on to its end."""
    done = subprocess.run(
        [sys.executable, "-c", LOST],
        capture_output=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_reader_that_goes_away_is_no_error(tmp_path: Path):
    """``logmfu ... | head`` leaves no traceback."""
    command = f"'{PROGRAM}' schema | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("steps:\n", "")


def test_post_mortem_beside_the_log(run, tmp_path: Path):
    """Three files with the log's name, listed on standard output; a second time only with --force."""
    (tmp_path / "run.log").write_bytes(LOG.read_bytes())
    done = run("report", "run.log", *H100)
    assert done.code == 0
    assert done.out.split() == ["run.report.html", "run.report.md", "run.mfu.png"]
    assert all((tmp_path / name).stat().st_size > 1000 for name in done.out.split())
    again = run("report", "run.log", *H100)
    assert again.code in (1, 2)
    assert "run.report.html" in again.err
    assert run("report", "run.log", *H100, "--force", "-q").code == 0


def test_several_post_mortems_have_an_index(run, tmp_path: Path):
    """--each writes one set of files per run, and a page that lists them."""
    done = run("report", LOG, OTHER, "--each", "--dir", tmp_path)
    assert done.code == 0
    page = (tmp_path / "index.report.html").read_text()
    assert "0.12-64gpu-hang-restart.report.html" in page
    assert "2.5-64gpu-crash-resume.report.html" in page


@pytest.mark.parametrize("redact", [False, True])
def test_runs_of_the_same_name_keep_their_reports(run, tmp_path: Path, redact: bool):
    """With --each, logs that are called the same in different folders do not write over one another."""
    for folder, log in (("a", LOG), ("b", OTHER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.log").write_bytes(log.read_bytes())
    done = run(
        "report", "a/run.log", "b/run.log", "--each", "--dir", ".", *(["--redact"] if redact else [])
    )
    assert done.code == 0
    stems = ["run-1", "run-2"] if redact else ["a-run", "b-run"]
    assert [name for name in done.out.split() if name.endswith(".html")] == [
        *(f"{stem}.report.html" for stem in stems),
        "index.report.html",
    ]
    page = (tmp_path / "index.report.html").read_text()
    assert all(f"{stem}.report.html" in page for stem in stems)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/run.log"], ["run"]),
        (["-"], ["stdin"]),
        (["x/a.log", "y/b.log"], ["a", "b"]),
        (["x/a/run.log", "y/a/run.log", "y/b/run.log"], ["x-a-run", "y-a-run", "b-run"]),
        (["run.log", "run.log"], ["run", "run-2"]),
    ],
)
def test_names_of_the_files_of_several_runs(paths: list[str], names: list[str]):
    """The log's own name as long as it is the only one, else as many folders as tell them apart."""
    assert stems(paths) == names


def test_explain_masks_secrets(run, tmp_path: Path):
    """Its output is pasted too."""
    text = LOG.read_text()
    (tmp_path / "run.log").write_text(
        text + "wandb_api_key ..... 0123456789abcdef0123456789abcdef01234567\n"
    )
    done = run("explain", "run.log", "--all")
    assert done.code == 0
    assert "0123456789abcdef" not in done.out


def test_explain_says_which_parser_and_why(run):
    """The ranking of the parsers, facts with their lines, and lines that were nearly read."""
    done = run("explain", LOG)
    assert done.code == 0
    assert done.out.startswith("parser: megatron")
    assert "world_size" in done.out


def test_parsers_prove_themselves(run):
    """--check runs every parser over its own samples."""
    done = run("parsers", "--check")
    assert done.code == 0
    assert "problem:" not in done.out


def test_attach_needs_no_network_for_a_dry_run(run):
    """What would be sent, to where; no token and no file."""
    done = run("attach", "github:acme/ops#12", LOG, "--dry-run")
    assert done.code == 0
    assert "https://github.com/acme/ops/issues/12" in done.out


def test_an_output_is_whole_or_not_there(tmp_path: Path):
    """A disk that is full half way: one sentence, and no file."""
    with files.whole(tmp_path / "a.txt") as partial:
        partial.write_text("all of it")
    assert (tmp_path / "a.txt").read_text() == "all of it"
    with pytest.raises(OutputError, match=r"b\.txt cannot be written"):
        _half_written(tmp_path / "b.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def _half_written(path: Path) -> None:
    with files.whole(path) as partial:
        partial.write_text("half of it")
        raise OSError(28, "No space left on device")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_standard_output_that_is_full_is_said():
    """As a redirection to a full disk."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAM, "analyze", LOG], stdout=full, stderr=subprocess.PIPE, env=environment()
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "error: standard output cannot be written",
        "  No space left on device",
    ]

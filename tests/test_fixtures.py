"""Every fixture under ``fixtures/`` is read as the facts beside it say.

``fixtures/<parser>/<case>.log[.gz]`` has a ``<case>.toml`` of facts a person checked::

    parser = "name"          # required, and the folder's name
    steps = 3                # required: rows of the step table
    first_step = 10          # of the first and of the last row, in the order of the log
    last_step = 30
    near_misses = 0          # default 0
    attempts = 1
    saves = 1                # distinct steps of save_end, per attempt
    evals = 0                # eval_end events
    profiles = 0
    [values]                 # a column: its median, or any of first, last, median, count
    loss = {first = 4.0, last = 2.0}
    [facts]
    world_size = 8
    [events]                 # event name: how many
    overflow = 2
    [timers]                 # timer name: median seconds
    fwd = 0.2

and a ``<case>.csv``, the whole step table, rewritten by ``pytest --update-fixtures``.
"""

from __future__ import annotations

import gzip
import tomllib
from functools import cache
from importlib.metadata import entry_points
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import logmfu
from logmfu import registry
from logmfu.testing import lines_of

ROOT = Path(__file__).parent.parent / "fixtures"
FOLDERS = sorted(folder for folder in ROOT.iterdir() if folder.is_dir())
LOGS = sorted([*ROOT.glob("*/*.log"), *ROOT.glob("*/*.log.gz")])
COUNTS = frozenset({"parser", "steps", "first_step", "last_step", "attempts", "saves", "evals", "profiles"})
KEYS = COUNTS | {"near_misses", "values", "facts", "events", "timers"}


def beside(log: Path, suffix: str) -> Path:
    """The file of the same case with another suffix."""
    return log.with_name(log.name.removesuffix(".gz").removesuffix(".log") + suffix)


def stated(log: Path) -> dict[str, Any]:
    """The facts a person checked."""
    return tomllib.loads(beside(log, ".toml").read_text(encoding="utf-8"))


@cache
def run_of(log: Path) -> logmfu.Run:
    """The log as logmfu reads it, without being told the format."""
    return logmfu.read(log)


def name_of(log: Path) -> str:
    """The test's name."""
    return f"{log.parent.name}/{log.name}"


each_log = pytest.mark.parametrize("log", LOGS, ids=name_of)


def test_every_built_in_parser_has_its_folder():
    """Folders and the parsers this distribution installs have the same names, and no folder is empty."""
    points = entry_points(group=registry.GROUP)
    built_in = {point.name for point in points if point.value.startswith("logmfu_parsers.")}
    assert {folder.name for folder in FOLDERS} == built_in
    assert {log.parent.name for log in LOGS} == built_in


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_file_stands_alone(folder: Path, update_fixtures: bool):
    """A log has its facts and its table (unless that is being written); facts and tables have their log."""
    cases = {beside(log, "").name for log in LOGS if log.parent == folder}
    assert {path.name.removesuffix(".toml") for path in folder.glob("*.toml")} == cases
    tables = {path.name.removesuffix(".csv") for path in folder.glob("*.csv")}
    assert tables <= cases
    assert update_fixtures or tables == cases


@each_log
def test_facts_use_known_keys(log: Path):
    """A misspelt key in a facts file checks nothing, so it is an error."""
    facts = stated(log)
    assert facts.keys() <= KEYS
    assert {"parser", "steps"} <= facts.keys()
    assert facts["parser"] == log.parent.name


@each_log
def test_fixture_is_detected_as_its_own_format(log: Path):
    """The parser of the folder reads the head best, and no other reads it equally well."""
    raw = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
    head = lines_of(raw.decode("utf-8", "replace").splitlines()[:20_000], str(log))
    assert registry.choose(registry.scores(head, registry.load()[0])) == log.parent.name


@each_log
def test_counts_are_those_a_person_found(log: Path):
    """Steps, attempts, saves, evaluations, profiles, events and near misses."""
    facts, run = stated(log), run_of(log)
    found = counts(run)
    named = {key: facts[key] for key in sorted(COUNTS & facts.keys())}
    assert {key: found[key] for key in named} == named
    assert run.coverage.near_misses == facts.get("near_misses", 0), run.coverage.examples
    events = run.events["event"].value_counts().to_dict()
    assert {name: events.get(name, 0) for name in facts.get("events", {})} == facts.get("events", {})


def counts(run: logmfu.Run) -> dict[str, Any]:
    """What a facts file may count."""
    steps, events = run.steps, run.events
    saves = events[events["event"] == "save_end"]
    return {
        "parser": run.parser,
        "steps": len(steps),
        "first_step": None if steps.empty else int(steps["step"].iloc[0]),
        "last_step": None if steps.empty else int(steps["step"].iloc[-1]),
        "attempts": len(run.attempt_starts),
        "saves": len(saves[["attempt", "step"]].drop_duplicates()),
        "evals": int((events["event"] == "eval_end").sum()),
        "profiles": len(run.profiles),
    }


@each_log
def test_values_are_those_a_person_found(log: Path):
    """First, last and median of the stated columns, stated facts, and medians of the stated timers."""
    facts, run = stated(log), run_of(log)
    for column, value in facts.get("values", {}).items():
        wanted = value if isinstance(value, dict) else {"median": value}
        found = figures(run.steps[column])
        assert {key: found[key] for key in wanted} == pytest.approx(wanted, rel=1e-6), column
    for name, value in facts.get("facts", {}).items():
        assert run.facts.get(name) == value, name
    for name, value in facts.get("timers", {}).items():
        assert run.timers.loc[run.timers["timer"] == name, "seconds"].median() == pytest.approx(value), name


def figures(column: pd.Series) -> dict[str, float]:
    """First, last and median of the rows that have the column, and their number."""
    there = column.dropna()
    return {
        "first": there.iloc[0],
        "last": there.iloc[-1],
        "median": there.median(),
        "count": len(there),
    }


@each_log
def test_step_table_is_the_reviewed_one(log: Path, update_fixtures: bool):
    """The whole step table equals the golden beside the log."""
    golden = beside(log, ".csv")
    written = as_csv(run_of(log))
    if update_fixtures:
        golden.write_text(written, encoding="utf-8")
    want = pd.read_csv(StringIO(golden.read_text(encoding="utf-8")))
    assert_frame_equal(pd.read_csv(StringIO(written)), want, check_exact=False, rtol=1e-7)


def as_csv(run: logmfu.Run) -> str:
    """The step table without the path and without columns that hold nothing, numbers to 8 digits."""
    table = run.steps.drop(columns="path")
    if len(table):
        table = table.dropna(axis="columns", how="all")
    return str(table.to_csv(index=False, lineterminator="\n", float_format="%.8g"))

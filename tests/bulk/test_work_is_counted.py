"""Work instead of time: how many lines reach a rule, how many bytes become text, how many rows are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from same import in_blocks, rule_parser

from logmfu.bulk import feed
from logmfu.bulk.scan import Scanner
from logmfu.parsing import Engine
from logmfu.tables import TableBuilder

STEPS, NOISE = 600, 30


def step(number: int) -> str:
    """An iteration line; its digits stand where those of every other one stand."""
    return (
        f" [2026-01-02 03:04:05] iteration {number:8d}/    9000 | consumed samples: {number * 16:12d} | "
        f"elapsed time per iteration (ms): {1000 + number % 900}.5 | learning rate: 1.250000E-04 | global batch size:    16 | "
        "lm loss: 2.500000E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """600 step lines, and 30 lines of no use after each."""
    path = tmp_path / "run.log"
    noise = "\n".join(f"worker says {number} things of no use to anyone" for number in range(NOISE))
    path.write_text("".join(f"{step(number)}\n{noise}\n" for number in range(1, STEPS + 1)))
    return path


def test_few_lines_reach_the_rules(sparse: Path, monkeypatch: pytest.MonkeyPatch):
    """Of 18,600 lines the rules see the first two of each width of the step number; the rest are columns."""
    fed: list[str] = []
    original = Engine.feed
    monkeypatch.setattr(Engine, "feed", lambda self, line: fed.append(line.text) or original(self, line))
    run = in_blocks(rule_parser("megatron"), [sparse])
    assert len(run.steps) == STEPS
    assert run.coverage.lines == STEPS * (NOISE + 1)
    assert run.coverage.matched == STEPS
    # widths of step and samples: 1-6, 7-9, 10-62, 63-99, 100-600 with 4 digits; two lines, two engines
    assert 2 * 2 * 4 <= len(fed) <= 2 * 2 * 7


def test_few_bytes_become_text(sparse: Path, monkeypatch: pytest.MonkeyPatch):
    """Lines without a needle stay bytes: less than a hundredth of the file is decoded."""
    decoded: list[int] = []
    original = feed.pieces
    monkeypatch.setattr(feed, "pieces", lambda raw: decoded.append(len(raw)) or original(raw))
    in_blocks(rule_parser("megatron"), [sparse])
    assert sum(decoded) < 0.01 * sparse.stat().st_size


def test_rows_are_not_kept_as_dicts(sparse: Path, monkeypatch: pytest.MonkeyPatch):
    """A step line of a known layout never becomes a record of its own."""
    kept: list[object] = []
    add = TableBuilder.add
    monkeypatch.setattr(TableBuilder, "add", lambda self, record: kept.append(record) or add(self, record))
    in_blocks(rule_parser("megatron"), [sparse])
    assert sum(getattr(record, "kind", "") == "step" for record in kept) <= 14


def test_lines_of_a_known_shape_are_not_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In a log of step lines alone, needles are looked for where a shape is new: up to the end of its block of 1 MB."""
    path = tmp_path / "run.log"
    path.write_text("\n".join(step(number) for number in range(1, 30_000)) + "\n")
    scanned: list[int] = []
    original = Scanner._hits
    monkeypatch.setattr(
        Scanner,
        "_hits",
        lambda self, block, feeds: scanned.append(len(block)) or original(self, block, feeds),
    )
    run = in_blocks(rule_parser("megatron"), [path])
    assert len(run.steps) == 29_999
    assert 0 < sum(scanned) < 0.3 * path.stat().st_size


def test_steady_counters_make_no_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of 8,000 lines of DeepSpeed few become records: its parser takes the others as columns."""
    path = tmp_path / "run.log"
    path.write_text("".join(deepspeed_step(number) for number in range(10, 40_010, 10)))
    added: list[object] = []
    add = TableBuilder.add
    monkeypatch.setattr(TableBuilder, "add", lambda self, record: added.append(record) or add(self, record))
    run = in_blocks(rule_parser("deepspeed"), [path])
    assert run.steps["step"].tolist() == list(range(10, 40_010, 10))
    assert run.coverage.matched == 8000
    assert len(added) < 0.05 * 8000


def deepspeed_step(number: int) -> str:
    """The step line and the throughput line."""
    head = f"[2026-01-02 03:{number // 10 % 3600 // 60:02d}:{number // 10 % 60:02d},000] [INFO]"
    return (
        f"{head} [logging.py:128:log_dist] [Rank 0] step={number}, skipped=0, lr=[0.0003], mom=[[0.9, 0.95]]\n"
        f"{head} [timer.py:264:stop] epoch=0/micro_step={number * 4}/global_step={number}, RunningAvgSamplesPerSec=150.5, "
        f"CurrSamplesPerSec=16{number % 10}.25, MemAllocated=2.17GB, MaxMemAllocated=16.05GB\n"
    )

"""Work instead of time: how many lines reach a rule, how many bytes become text, how many rows are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from same import in_blocks, rule_parser

from logmfu.bulk import feed
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

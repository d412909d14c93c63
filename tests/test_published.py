"""Published performance tables: what they print follows from what they state, or does not."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from logmfu.flops import CONVENTIONS, ModelShape, formulas
from logmfu.flops.evaluate import evaluate

ROWS = list(
    csv.DictReader(
        (Path(__file__).parent / "data" / "published.csv").read_text(encoding="utf-8").splitlines()
    )
)
ABOUT = {
    "id",
    "group",
    "name",
    "metric",
    "published",
    "tolerance_rel",
    "verdict",
    "evidence",
    "note",
    "source",
}
PROVEN = [
    row for row in ROWS if row["evidence"] in {"end-to-end", "formula"} and row["verdict"] == "reproduces"
]
OFF = [row for row in ROWS if row["verdict"] == "known-off"]
LIKELY = [
    row
    for row in ROWS
    if row["evidence"] in {"recalled-input", "fitted"} and row["verdict"] == "reproduces"
]
WITH_ATTENTION = [row for row in PROVEN if row["metric"] != "params_B" and row["convention"] != "6n"]
CLOSE = {"mtnlg-003"}
"""Printed so roughly that both attention counts fit."""


def value(row: dict[str, str], **changed: Any) -> float:
    """The row's metric, computed from the row's inputs."""
    facts = {name: cell for name, cell in row.items() if cell and name not in ABOUT} | changed
    if row["metric"] == "params_B":
        return formulas.sc21_parameters(ModelShape.from_facts(facts), float(row["seq_len"])) / 1e9
    found = evaluate(facts)
    assert found.tflops_per_device is not None
    if row["metric"].startswith("mfu_pct"):
        return (found.mfu or 0) * 100
    if row["metric"] == "hfu_pct":
        return (found.hfu or 0) * 100
    return found.tflops_per_device * (
        float(row["devices"]) / 1000 if row["metric"] == "aggregate_pflops" else 1
    )


def agrees(row: dict[str, str], **changed: Any) -> bool:
    """Whether the computed value is the published one, within what its printed digits are worth."""
    return abs(value(row, **changed) / float(row["published"]) - 1) <= float(row["tolerance_rel"])


def swapped(row: dict[str, str]) -> str:
    """The other attention count."""
    return "half" if (row["attention"] or CONVENTIONS[row["convention"]].attention) == "full" else "full"


@pytest.mark.parametrize("row", PROVEN, ids=lambda row: row["id"])
def test_published_numbers_are_reproduced(row: dict[str, str]) -> None:
    """Time or tokens per second to FLOPs to the published figure, under the convention known beforehand."""
    assert agrees(row)


@pytest.mark.parametrize("row", LIKELY, ids=lambda row: row["id"])
def test_published_numbers_with_recalled_inputs_are_reproduced(row: dict[str, str]) -> None:
    """The same where an input is recalled or was fitted: a smoke test."""
    assert agrees(row)


@pytest.mark.parametrize("row", OFF, ids=lambda row: row["id"])
def test_published_numbers_that_do_not_follow_are_off(row: dict[str, str]) -> None:
    """A printed number that does not follow from its own inputs is not reproduced."""
    assert not agrees(row)


@pytest.mark.parametrize(
    "row", [row for row in WITH_ATTENTION if row["id"] not in CLOSE], ids=lambda row: row["id"]
)
def test_the_other_attention_count_fails(row: dict[str, str]) -> None:
    """Counted with the wrong attention convention, no row fits."""
    assert not agrees(row, attention=swapped(row))


def test_no_row_was_lost() -> None:
    """All 472 rows are here: 360 of them prove something, 11 are known to be off."""
    assert (len(ROWS), len(PROVEN), len(OFF)) == (472, 360, 11)
    assert all(row["source"] for row in ROWS)

"""The table of steps as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from logmfu.errors import OptionError
from logmfu.render.escape import csv_cell
from logmfu.tables import Run


def csv(run: Run) -> str:
    """``run.steps`` as CSV. Text cells that a spreadsheet would run as a formula are defused."""
    steps = run.steps.copy()
    for name in steps.columns:
        if not pd.api.types.is_numeric_dtype(steps[name]) and not pd.api.types.is_datetime64_dtype(
            steps[name]
        ):
            steps[name] = steps[name].map(lambda value: csv_cell(str(value)), na_action="ignore")
    return steps.to_csv(index=False, lineterminator="\n")


def parquet(run: Run, path: Path) -> None:
    """``run.steps`` as a Parquet file. Raises ``OptionError`` without pyarrow."""
    try:
        run.steps.assign(**_as_text(run.steps)).to_parquet(path, index=False)
    except ImportError as error:
        raise OptionError("writing Parquet needs pyarrow", hint="pip install 'logmfu[parquet]'") from error


def _as_text(steps: pd.DataFrame) -> dict[str, pd.Series]:
    """Columns of values of several types (a number in one line, a word in another), as texts."""
    mixed = steps.select_dtypes("object")
    return {str(name): mixed[name].map(str, na_action="ignore") for name in mixed}

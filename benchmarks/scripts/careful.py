"""What somebody writes who knows that most lines are noise: one pattern first, the fields after it."""

import re
import sys
from pathlib import Path

import pandas as pd

LINE = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\] iteration\s+(\d+)/\s*(\d+) \|")
FIELDS = {
    "consumed": re.compile(r"consumed samples:\s+(\d+)"),
    "ms": re.compile(r"elapsed time per iteration \(ms\): ([\d.]+)"),
    "tflops": re.compile(r"throughput per GPU \(TFLOP/s/GPU\): ([\d.]+)"),
    "lr": re.compile(r"learning rate: ([\d.E+-]+)"),
    "batch": re.compile(r"global batch size:\s+(\d+)"),
    "loss": re.compile(r"lm loss: ([\d.E+-]+)"),
    "scale": re.compile(r"loss scale: ([\d.]+)"),
    "norm": re.compile(r"grad norm: ([\d.]+)"),
    "zeros": re.compile(r"num zeros: (\d+)"),
    "skipped": re.compile(r"number of skipped iterations:\s+(\d+)"),
    "nan": re.compile(r"number of nan iterations:\s+(\d+)"),
}

rows = []
with Path(sys.argv[1]).open() as log:
    for line in log:
        match = LINE.search(line)
        if match:
            row = {"time": match[1], "step": int(match[2]), "total": int(match[3])}
            for name, pattern in FIELDS.items():
                found = pattern.search(line)
                row[name] = float(found[1]) if found else None
            rows.append(row)
table = pd.DataFrame(rows)
table["time"] = pd.to_datetime(table["time"])
print(
    len(table),
    table["ms"].median(),
    table["tflops"].median(),
    table["tflops"].quantile([0.05, 0.95]).tolist(),
)

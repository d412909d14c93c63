"""What somebody writes in five minutes: every field searched for in every line."""

import re
import sys
from pathlib import Path

import pandas as pd

PATTERNS = {
    "time": r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\]",
    "step": r"iteration\s+(\d+)/",
    "ms": r"elapsed time per iteration \(ms\): ([\d.]+)",
    "tflops": r"throughput per GPU \(TFLOP/s/GPU\): ([\d.]+)",
    "loss": r"lm loss: ([\d.E+-]+)",
    "norm": r"grad norm: ([\d.]+)",
}

rows = []
with Path(sys.argv[1]).open() as log:
    for line in log:
        found = {name: re.search(pattern, line) for name, pattern in PATTERNS.items()}
        if found["step"] and found["ms"]:
            rows.append({name: match[1] for name, match in found.items() if match})
table = pd.DataFrame(rows)
table["time"] = pd.to_datetime(table["time"])
for name in ("step", "ms", "tflops", "loss", "norm"):
    table[name] = table[name].astype(float)
print(
    len(table),
    table["ms"].median(),
    table["tflops"].median(),
    table["tflops"].quantile([0.05, 0.95]).tolist(),
)

"""How right the analysis is: planted runs with a known truth, and clean runs, as Markdown tables.

    python benchmarks/accuracy.py                  200 planted and 200 clean runs
    python benchmarks/accuracy.py --runs 50 --framework gpt-neox
    python benchmarks/accuracy.py --seed 17        one planted run: its truth beside the report
    python benchmarks/accuracy.py --seed 17 --clean --keep /tmp/run.log

The writers (``tests/writers``) share no code with ``logmfu``; what counts as right is written in
``tests/writers/truth.py``. Numbers depend on nothing but the seeds: no clock, no network.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from scoring import STALL_KINDS, Score, false_alarms, score
from writers import LAYOUTS, Plan, Truth, Written, clean_plan, random_plan, write

import logmfu

NO_EVIDENCE = "any, no evidence"
"""Row of stalls whose cause the log does not show: right is ``unknown`` or ``slow_steps``, not a name."""


@dataclass
class Tally:
    """Sums over many runs."""

    runs: int = 0
    planted: Counter = field(default_factory=Counter)
    found: Counter = field(default_factory=Counter)
    misnamed: Counter = field(default_factory=Counter)
    reported: Counter = field(default_factory=Counter)
    right: Counter = field(default_factory=Counter)
    sizes: defaultdict = field(default_factory=lambda: defaultdict(list))
    ledger: defaultdict = field(default_factory=lambda: defaultdict(list))
    wall: list = field(default_factory=list)
    exact: Counter = field(default_factory=Counter)
    changes: Counter = field(default_factory=Counter)
    alarms: Counter = field(default_factory=Counter)
    crashed: list = field(default_factory=list)
    bad_seeds: defaultdict = field(default_factory=lambda: defaultdict(list))


def main() -> int:
    """Parse the arguments, run, print."""
    options = _arguments()
    if options.seed is not None:
        return _show_one(options)
    chosen = [options.framework] if options.framework else list(LAYOUTS)
    planted, clean = Tally(), Tally()
    for seed in _seeds(options.runs, chosen):
        _planted_run(seed, planted)
        _clean_run(seed, clean)
    print(_tables(planted, clean))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200, help="planted runs, and as many clean ones")
    parser.add_argument("--framework", choices=list(LAYOUTS), help="only this layout")
    parser.add_argument("--seed", type=int, help="one run: its truth beside the report")
    parser.add_argument("--clean", action="store_true", help="with --seed: the clean run of that seed")
    parser.add_argument("--keep", type=Path, help="with --seed: write the log here")
    return parser.parse_args()


def _seeds(runs: int, chosen: list[str]) -> list[int]:
    """The first seeds whose plan is in a chosen layout; layouts take turns."""
    order = list(LAYOUTS)
    seeds = (seed for seed in range(runs * len(order)) if order[seed % len(order)] in chosen)
    return [seed for seed, _ in zip(seeds, range(runs), strict=False)]


def _report(written: Written, path: Path) -> Any:
    path.write_text(written.text, encoding="utf-8")
    return logmfu.analyze(logmfu.read(path))


def _analyzed(plan: Plan, tally: Tally) -> tuple[Written, Any] | None:
    """The log and its report; a run that raises is counted, with its seed, and reported at the end."""
    written = write(plan)
    tally.runs += 1
    with tempfile.TemporaryDirectory() as folder:
        try:
            return written, _report(written, Path(folder) / "run.log")
        except Exception as error:
            tally.crashed.append(f"seed {plan.seed} ({plan.framework}): {type(error).__name__}: {error}")
            return None


def _planted_run(seed: int, tally: Tally) -> None:
    result = _analyzed(random_plan(seed), tally)
    if result is None:
        return
    written, report = result
    got = score(report, written.truth, written.plan.log_interval)
    _add(tally, got, report, written.truth, seed)


def _clean_run(seed: int, tally: Tally) -> None:
    result = _analyzed(clean_plan(seed), tally)
    if result is None:
        return
    alarms = false_alarms(result[1])
    tally.alarms.update(alarms)
    for alarm in set(alarms):
        tally.bad_seeds[alarm].append(seed)
    _add_exact(tally, score(result[1], result[0].truth, result[0].plan.log_interval), seed)


def _row(planted: Any) -> str:
    return planted.kind if planted.has_evidence else NO_EVIDENCE


def _add(tally: Tally, got: Score, report: Any, truth: Truth, seed: int) -> None:
    for match in got.hits:
        row = _row(match.planted)
        tally.planted[row] += 1
        tally.found[row] += 1
        tally.sizes[row].append(match.size_error)
    for planted in got.misses:
        tally.planted[_row(planted)] += 1
        tally.bad_seeds[f"missed {_row(planted)}"].append(seed)
    for planted, found in got.misnamed:
        tally.misnamed[_row(planted)] += 1
        tally.bad_seeds[f"{_row(planted)} named {found.kind}"].append(seed)
    for found in got.wrong:
        tally.bad_seeds[f"false {found.kind}"].append(seed)
    tally.reported.update(stall.kind for stall in report.stalls if stall.kind in STALL_KINDS)
    tally.right.update(stall.kind for stall in got.right)
    tally.changes["found"] += got.changes_found
    tally.changes["missed"] += got.changes_missed
    tally.changes["right"] += got.changes_right
    tally.changes["wrong"] += len(got.changes_wrong)
    for name, count in (("missed change", got.changes_missed), ("false change", len(got.changes_wrong))):
        if count:
            tally.bad_seeds[name].append(seed)
    _add_exact(tally, got, seed)
    _name_exits(tally, report, truth, seed)


def _name_exits(tally: Tally, report: Any, truth: Truth, seed: int) -> None:
    for got, true in zip(report.attempts, truth.attempts, strict=False):
        if got.exit not in true.exits:
            tally.bad_seeds[f"exit {'|'.join(sorted(true.exits))} called {got.exit}"].append(seed)


def _add_exact(tally: Tally, got: Score, seed: int) -> None:
    for name in ("attempts", "steps", "exits", "lost_steps", "durable_steps"):
        right = getattr(got, name)
        tally.exact[name] += right
        if not right:
            tally.bad_seeds[f"wrong {name}"].append(seed)
    for kind, error in got.ledger.items():
        tally.ledger[kind].append(error)
        if error > 0.01:
            tally.bad_seeds[f"ledger {kind} off by more than 1 %"].append(seed)
    tally.ledger["(sum against wall clock)"].append(got.ledger_sum)
    tally.ledger["(wall clock)"].append(got.wall_clock)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"


def _percent(values: list[float], quantile: float) -> str:
    return f"{100 * float(np.quantile(values, quantile)):.2f} %" if values else "–"


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _tables(planted: Tally, clean: Tally) -> str:
    parts = [
        f"## Stalls: {planted.runs} planted runs",
        _stall_table(planted),
        f"Changes of pace: recall {_share(planted.changes['found'], planted.changes['found'] + planted.changes['missed'])},"
        f" precision {_share(planted.changes['right'], planted.changes['right'] + planted.changes['wrong'])}.",
        "## Ledger: error per class, as a share of the wall clock",
        _ledger_table(planted),
        "## Attempts",
        _exact_table(planted, clean),
        f"## Clean runs: {clean.runs}",
        _alarm_table(clean),
    ]
    parts += _lists(planted, clean)
    return "\n\n".join(parts)


def _stall_table(tally: Tally) -> str:
    head = ["class", "planted", "recall", "wrong name", "size error median", "p95", "reported", "precision"]
    kinds = sorted(tally.planted.keys() | tally.reported.keys())
    return _table(head, [_stall_row(tally, kind) for kind in kinds])


def _stall_row(tally: Tally, kind: str) -> list[Any]:
    planted, sizes = tally.planted[kind], tally.sizes[kind]
    recall = _share(tally.found[kind], planted)
    reported = tally.reported[kind]
    return [
        kind, planted, recall, tally.misnamed[kind], _percent(sizes, 0.5), _percent(sizes, 0.95), reported,
        _share(tally.right[kind], reported),
    ]  # fmt: skip


def _ledger_table(tally: Tally) -> str:
    head = ["class", "runs", "median", "p95", "max", "above 1 %"]
    rows = [
        [kind, len(e), _percent(e, 0.5), _percent(e, 0.95), _percent(e, 1.0), sum(x > 0.01 for x in e)]
        for kind, e in sorted(tally.ledger.items())
    ]
    return _table(head, rows)


def _exact_table(planted: Tally, clean: Tally) -> str:
    def cell(tally: Tally, name: str) -> str:
        return f"{tally.exact[name]}/{tally.runs - len(tally.crashed)}"

    names = ("attempts", "steps", "exits", "lost_steps", "durable_steps")
    return _table(
        ["exact in", "planted runs", "clean runs"], [[n, cell(planted, n), cell(clean, n)] for n in names]
    )


def _alarm_table(clean: Tally) -> str:
    read = clean.runs - len(clean.crashed)
    if not clean.alarms:
        return (
            f"No stall, no change, no incident in {read} runs that could be read."
            if read
            else "No run could be read."
        )
    return _table(
        ["false alarm", "count", "runs"], [[k, c, len(clean.bad_seeds[k])] for k, c in clean.alarms.items()]
    )


def _lists(planted: Tally, clean: Tally) -> list[str]:
    """What went wrong, with the seeds to look at."""
    parts = []
    for name, tally in (("planted", planted), ("clean (`--clean`)", clean)):
        rows = [
            f"- {what}: {', '.join(map(str, sorted(set(seeds))[:12]))}"
            for what, seeds in sorted(tally.bad_seeds.items())
        ]
        if rows:
            parts.append(f"Seeds to look at, {name}:\n\n" + "\n".join(rows))
        if tally.crashed:
            parts.append(
                f"Runs that raised, {name}:\n\n" + "\n".join(f"- {text}" for text in tally.crashed)
            )
    return parts


def _show_one(options: argparse.Namespace) -> int:
    """Truth and report of one run, side by side."""
    plan = (clean_plan if options.clean else random_plan)(options.seed)
    written = write(plan)
    print(plan)
    _print_truth(written)
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = _report(written, options.keep or Path(folder) / "run.log")
        except Exception:
            traceback.print_exc()
            return 1
    _print_report(written, report)
    return 0


def _print_truth(written: Written) -> None:
    truth = written.truth
    print(f"\ntruth: clock {truth.clock}, wall clock {truth.wall_clock_s:.1f} s")
    for attempt in truth.attempts:
        print(" ", attempt)
    for stall in truth.stalls:
        names = "|".join(sorted(stall.accept))
        print(
            f"  {stall.kind} after {stall.step} [{stall.first}..{stall.last}] attempt {stall.attempt}: {stall.seconds:.1f} s,"
            f" {names}{'' if stall.eligible else ', need not be found'}"
        )
    for change in truth.changes:
        print(" ", change)


def _print_report(written: Written, report: Any) -> None:
    got = score(report, written.truth, written.plan.log_interval)
    seconds = {entry.kind: entry.seconds for entry in report.ledger}
    print(f"\nreport: clock {report.clock}, wall clock {report.wall_clock_s} s")
    for attempt in report.attempts:
        print(
            f"  attempt {attempt.number}: {attempt.first_step}..{attempt.last_step} {attempt.exit},"
            f" lost {attempt.lost_steps}, durable {attempt.durable_step}"
        )
    print("\nledger: class, report, truth (least..most), error")
    for kind in sorted(got.ledger, key=got.ledger.get, reverse=True):
        least, most = written.truth.bounds(kind)
        print(
            f"  {kind:13} {seconds.get(kind, 0):12.1f} {least:12.1f}..{most:.1f}  {100 * got.ledger[kind]:.2f} %"
        )
    for name, rows in (
        ("missed", got.misses),
        ("misnamed", got.misnamed),
        ("false", got.wrong),
        ("false change", got.changes_wrong),
    ):
        for row in rows:
            print(f"{name}: {row}")
    for match in got.hits:
        if match.size_error > 0.1:
            print(f"size {100 * match.size_error:.0f} % off: {match}")


if __name__ == "__main__":
    sys.exit(main())

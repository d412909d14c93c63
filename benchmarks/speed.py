"""How fast ``logmfu analyze`` is, side by side with what else reads such a log. ``python benchmarks/speed.py``.

Every figure is a whole process, from its start to its end. Commands that are compared run in turn, and the ratio
is taken pair by pair, so that a machine that is busy with something else slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import logs

HERE = Path(__file__).parent
ANALYZE = (sys.executable, "-c", "import sys; from logmfu.cli import main; main()", "analyze", "-q")
TABLES = ("sparse", "dense", "start", "scaling", "layouts", "pipe")
AWK = 'BEGIN{FS="|"} {split($3,a,":"); split($4,b,":"); n++; s+=a[2]; t+=b[2]} END {print n, s/n, t/n}'


@dataclass(frozen=True, slots=True)
class Run:
    """One process that ended: seconds on the wall and of all its processors, and the largest process."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def run(command: Sequence[str], *, stdin: str | None = None, cores: int | None = None) -> Run:
    """Run a command; raise if it fails. The largest process is asked for in a child of its own."""
    code = (
        "import json,os,resource,subprocess,sys,time\n"
        "cores, command = json.loads(sys.argv[1])\n"
        "if cores: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])\n"
        "start = time.perf_counter()\n"
        "subprocess.run(command, check=True, stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))\n"
    )
    # pip compiles what it installs: neither side compiles its modules again at every start
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with Path(stdin or os.devnull).open("rb") as given:
        out = subprocess.run(
            [sys.executable, "-c", code, json.dumps([cores, list(command)])],
            check=True, stdin=given, capture_output=True, text=True, env=compiled,
        )  # fmt: skip
    return Run(*json.loads(out.stdout))


def pairs(one: Callable[[], Run], other: Callable[[], Run], times: int) -> tuple[list[Run], list[Run]]:
    """Both in turn, after one run of each that does not count."""
    one(), other()
    both = [(one(), other()) for _ in range(times)]
    return [first for first, _ in both], [second for _, second in both]


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def compare(title: str, log: Path, commands: dict[str, Sequence[str]], times: int) -> None:
    """A table of how much longer other commands take than ``logmfu analyze`` for one log."""
    size = log.stat().st_size / 1e6
    print(f"\n## {title}: {size:.0f} MB\n")
    print(
        "| against | its wall s | its CPU s | ours wall s | ours CPU s | wall ratio | CPU ratio | our peak MB |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, command in commands.items():
        ours, theirs = pairs(lambda: run([*ANALYZE, str(log)]), lambda command=command: run(command), times)
        wall = median([their.wall_s / our.wall_s for our, their in zip(ours, theirs, strict=True)])
        cpu = median([their.cpu_s / our.cpu_s for our, their in zip(ours, theirs, strict=True)])
        print(
            f"| {name} | {median([r.wall_s for r in theirs]):.2f} | {median([r.cpu_s for r in theirs]):.2f} "
            f"| {median([r.wall_s for r in ours]):.2f} | {median([r.cpu_s for r in ours]):.2f} "
            f"| {wall:.2f} | {cpu:.2f} | {max(r.peak_mb for r in ours):.0f} |",
            flush=True,
        )


def commands(log: Path, folder: Path) -> dict[str, Sequence[str]]:
    """What else reads the log, as far as it is installed."""
    found: dict[str, Sequence[str]] = {
        "a careful script": (sys.executable, str(HERE / "scripts" / "careful.py"), str(log)),
        "a plain script": (sys.executable, str(HERE / "scripts" / "plain.py"), str(log)),
    }
    awk = shutil.which("mawk") or shutil.which("awk")
    if shutil.which("rg") and awk:
        one = f"rg -N --no-filename -F 'elapsed time per iteration' {log}"
        all_needles = f"rg -N --no-filename -F -f {needles(folder)} {log}"
        found["rg, 1 literal, and awk"] = ("sh", "-c", f"{one} | {awk} '{AWK}'")
        found["rg, all our literals, and awk"] = ("sh", "-c", f"{all_needles} | {awk} '{AWK}'")
    if shutil.which("lnav"):
        for name, what in {
            "lnav, two means": ";SELECT count(*), avg(ms), avg(tflops) FROM megatron_step",
            "lnav, the step table": ";SELECT * FROM megatron_step",
        }.items():
            query = ("-c", what, "-c", ":write-csv-to -")
            found[name] = ("lnav", "-n", "-I", str(HERE / "lnav"), *query, str(log))
    return found


def needles(folder: Path) -> Path:
    """The literals that logmfu looks for in such a log, a line each."""
    from logmfu import failures, registry

    path = folder / "needles.txt"
    rules = (*registry.get("megatron").rules, *failures.RULES)
    path.write_text("\n".join(sorted({rule.needle for rule in rules})) + "\n")
    return path


def start_up(folder: Path, times: int) -> None:
    """Commands whose time is mostly their start, against the import of pandas."""
    log = logs.write(folder / "1mb.log", 300, noise=30)
    print(
        "\n## Start-up\n\n| command | wall s | CPU s | CPU, `import pandas` = 1 |\n| --- | --- | --- | --- |"
    )
    pandas = (sys.executable, "-c", "import pandas")
    main = ANALYZE[:3]
    for name, command in {
        "python -c 'import pandas'": pandas,
        "logmfu --help": (*main, "--help"),
        f"logmfu analyze, {log.stat().st_size / 1e6:.1f} MB": (*ANALYZE, str(log)),
    }.items():
        ours, theirs = pairs(lambda command=command: run(command), lambda: run(pandas), times)
        ratio = median([our.cpu_s / their.cpu_s for our, their in zip(ours, theirs, strict=True)])
        print(
            f"| {name} | {median([r.wall_s for r in ours]):.2f} | {median([r.cpu_s for r in ours]):.2f} | {ratio:.2f} |",
            flush=True,
        )


def scaling(folder: Path, times: int, largest_mb: int) -> None:
    """Rate and memory over size, share of step lines, and cores."""
    print(
        "\n## Scaling\n\n| log | MB | steps | cores | wall s | CPU s | MB per CPU s | peak MB |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    cores = len(os.sched_getaffinity(0))
    cases = [(mb, 30, cores) for mb in (1, 10, 100, 1000) if mb <= largest_mb]
    cases += [(100, 30, 1), (100, 0, cores), (100, 0, 1)]
    for mb, noise, used in cases:
        steps = max(1, round(mb * 1e6 / (380 + noise * 125)))
        log = logs.write(folder / f"{mb}mb-{noise}.log", steps, noise=noise)
        runs = [run([*ANALYZE, str(log)], cores=used) for _ in range(times)]
        wall, cpu = median([r.wall_s for r in runs]), median([r.cpu_s for r in runs])
        size = log.stat().st_size / 1e6
        print(
            f"| {'1 in 1' if not noise else '1 in 31'} | {size:.0f} | {steps} | {used} | {wall:.2f} | {cpu:.2f} "
            f"| {size / cpu:.0f} | {max(r.peak_mb for r in runs):.0f} |",
            flush=True,
        )


def layouts(folder: Path, times: int) -> None:
    """Time a line takes in logs of nothing but lines that matter, over the layouts."""
    print(
        "\n## Layouts\n\n| log | lines | MB | wall s | CPU s | CPU us per line |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, lines in logs.LAYOUTS.items():
        log = logs.write_lines(folder / f"{name}.log", lines, 100_000)
        with log.open("rb") as file:
            count = sum(1 for _ in file)
        few = logs.write_lines(folder / f"{name}-few.log", lines, 100)
        start = median([run([*ANALYZE, str(few)]).cpu_s for _ in range(times)])
        runs = [run([*ANALYZE, str(log)]) for _ in range(times)]
        wall, cpu = median([r.wall_s for r in runs]), median([r.cpu_s for r in runs])
        print(
            f"| {name} | {count} | {log.stat().st_size / 1e6:.0f} | {wall:.2f} | {cpu:.2f} | {(cpu - start) / count * 1e6:.1f} |",
            flush=True,
        )


def through_a_pipe(log: Path, copies: int) -> None:
    """A log of many GB that never lies on disk: the same file again and again, through a pipe."""
    feeder = f"for i in $(seq {copies}); do cat {log}; done"
    analyze = " ".join(f"'{part}'" for part in ANALYZE)
    done = run(["sh", "-c", f"({feeder}) | {analyze} -"])
    size = copies * log.stat().st_size / 1e6
    print(
        f"\n## Through a pipe\n\n{size / 1e3:.1f} GB: {done.wall_s:.1f} s, {size / done.wall_s:.0f} MB/s, peak {done.peak_mb:.0f} MB"
    )


def main() -> None:
    """Make the inputs, run everything, print tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--times", type=int, default=5, help="runs of each command")
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "logmfu-speed")
    options.add_argument(
        "--largest", type=int, default=1000, help="MB of the largest log of the scaling table"
    )
    options.add_argument(
        "--pipe-copies", type=int, default=0, help="also N times the sparse log through a pipe"
    )
    options.add_argument("--only", choices=TABLES)
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    wanted = {given.only} if given.only else set(TABLES)
    sparse = dense = None
    if wanted & {"sparse", "pipe"}:
        sparse = logs.write(given.folder / "sparse.log", 150_000, noise=30)
    if "sparse" in wanted and sparse:
        compare("Sparse, 1 step line in 31", sparse, commands(sparse, given.folder), given.times)
    if "dense" in wanted:
        dense = logs.write(given.folder / "dense.log", 500_000, noise=0)
        compare("Dense, step lines only", dense, commands(dense, given.folder), given.times)
    if "start" in wanted:
        start_up(given.folder, given.times)
    if "scaling" in wanted:
        scaling(given.folder, given.times, given.largest)
    if "layouts" in wanted:
        layouts(given.folder, given.times)
    if "pipe" in wanted and sparse and given.pipe_copies:
        through_a_pipe(sparse, given.pipe_copies)


if __name__ == "__main__":
    main()

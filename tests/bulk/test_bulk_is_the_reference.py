"""The quick way through a log gives what the reference gives, however the log is cut."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from same import (
    _results,
    assert_same,
    by_processes,
    finished,
    in_blocks,
    in_ranges,
    line_by_line,
    rule_parser,
)

from logmfu import reading
from logmfu.bulk import blocks, crew, feed, replay
from logmfu.bulk.plan import plan
from logmfu.errors import FormatError
from logmfu.parsing import RuleParser
from logmfu.source import open_sources
from logmfu.tables import TableBuilder

HERE = Path(__file__).parent
FIXTURES = sorted(path for path in (HERE.parents[1] / "fixtures").glob("*/*.log*"))
REAL = Path(os.environ.get("LOGMFU_REAL_LOGS") or "/nowhere")
REAL_LOGS = sorted(REAL.glob("*.log*")) if REAL.is_dir() else []


def step(number: int, tail: str = "", stamp: str = "2026-01-02 03:04:05") -> str:
    """An iteration line in the layout of Megatron-LM core 0.12."""
    return (
        f" [{stamp}] iteration {number:8d}/    9000 | consumed samples: {number * 16:12d} | "
        f"elapsed time per iteration (ms): {1000 + number % 7}.{number % 10} | throughput per GPU (TFLOP/s/GPU): 4{number % 10}1.5 | "
        f"learning rate: {1 + number % 9}.250000E-0{number % 10} | global batch size:    16 | lm loss: 2.{number:06d}E+00 | "
        f"loss scale: 1.0 | grad norm: 0.{number % 1000:03d} | number of skipped iterations:   {number % 2} | "
        f"number of nan iterations:   0 |{tail}"
    )


DUMP = [
    "------------------------ arguments ------------------------",
    "  hidden_size ..................................... 1024",
    "  num_layers ...................................... 24",
    "a stranger",
    "  seq_length ...................................... 2048",
    "-------------------- end of arguments ---------------------",
]
TIMERS = [
    "(min, max) time across ranks (ms):",
    "    forward-backward ...............................: (900.10, 910.25)",
    "    optimizer ......................................: (20.50, 21.75)",
]
TABLE = [
    "Root Cause (first observed failure):",
    "[0]:",
    "  time      : 2026-01-02_03:05:00",
    "  host      : node-7",
    "  rank      : 7 (local_rank: 3)",
    "  exitcode  : 1 (pid: 910)",
    "=" * 60,
]
numbers = st.integers(1, 9999)
stamps = st.sampled_from(
    [
        "2026-01-02 03:04:05",
        "2026-01-02 03:04:59",
        "2026-02-31 03:04:05",
        "2026-01-02 25:04:05",
        "0000-00-00 00:00:00",
    ]
)
steps = st.builds(lambda number, stamp: [step(number, stamp=stamp)], numbers, stamps)
tails = st.sampled_from(["", "", " expert 1 load: 0.25 |", " expert 2 load: 0.75 |"])
"""A column that nobody knows, its name with a digit."""
runs = st.builds(
    lambda first, count, tail: [step(first + at, tail) for at in range(count)],
    numbers,
    st.integers(1, 12),
    tails,
)
noise = st.sampled_from(
    [
        [""],
        ["plain text of no use"],
        ["größer als 漢字 \N{ROCKET} erlaubt"],
        ["2026-01-02 03:04:06,123 INFO loader: shard 7 of 9"],
        ["node-1: hello world of pipes", "node-1: once more to be sure"],
        ["10%|█   | 1/10\r20%|██  | 2/10\rdone"],
        ["\x1b[32melapsed \x1b[0mtime \x1b[1mper iteration\x1b[0m"],
        ["elapsed time per iteration is not printed here"],
        ["elapsed time per iteration (ms): 12 torn iteration   7/"],
        [
            "[rank3]:[E1230 03:05:00.123456789 ProcessGroupNCCL.cpp:629] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600001 milliseconds before timing out."
        ],
        ["RuntimeError: CUDA error: an illegal memory access was encountered"],
        ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."],
        [
            "using world size: 16, data-parallel size: 4, context-parallel size: 1, tensor-model-parallel size: 4"
        ],
        ["  successfully saved checkpoint from iteration      30 to /data/ckpt"],
    ]
)
wrapped = st.builds(
    lambda number, wrap: [wrap(step(number))],
    numbers,
    st.sampled_from(
        [
            lambda line: f"[default7]:{line}",
            lambda line: f"[rank{len(line) % 3}]:{line}",
            lambda line: f"2026-01-02T03:04:06.123456789Z {line}",
            lambda line: f"2026-01-02T03:04:06.123456789Z stdout F {line}",
            lambda line: f"done {line}",
            lambda line: f"{line}{line}",
            lambda line: f"{line}\rand more",
            lambda line: f"{line}\r",
            lambda line: f"\x1b[33m{line}\x1b[0m",
        ]
    ),
)
pieces = st.builds(
    lambda number: [
        f"2026-01-02T03:04:06.1Z stdout P {step(number)[:90]}",
        "2026-01-02T03:04:06.2Z stderr F in between",
        f"2026-01-02T03:04:06.3Z stdout F {step(number)[90:]}",
        f'{{"log":"{step(number + 1).strip()}\\n","stream":"stdout","time":"2026-01-02T03:04:07.5Z"}}',
    ],
    numbers,
)


def timed(number: int, style: str, names: int, apart: int, wrap: str) -> list[str]:
    """A step line and the timers behind it, as several options and ranks print them."""
    value = 10.0 ** (number % 5 - 1) * 1.25
    padded = [
        f"{name} ".ljust(30, ".") for name in ("forward", "send-2", "send-3", "data/setup", "optimizer")
    ]
    header, rows = {
        "minmax": ("(min, max) time", [f"    {name}: ({value:.2f}, {value + 1:.2f})" for name in padded]),
        "max": ("max time", [f"    {name}: {value:.2f}" for name in padded]),
        "all": (
            "times",
            ["  optimizer:", *(f"     rank {rank:2d}: {value + rank:.2f}" for rank in range(4))],
        ),
    }[style]
    between = ["between the rows"] * apart
    lines = [f"{header} across ranks (ms):", *between, *rows[:1], *between, *rows[1:names]]
    stamp = f"2026-01-02T{25 if number % 7 == 5 else 3:02d}:04:{number % 60:02d}.5Z "
    prefix = stamp if wrap == "stamp" else wrap
    return [step(number), *(prefix + line for line in lines)]


blocks_of_timers = st.builds(
    lambda first, count, *how: [line for at in range(count) for line in timed(first + at, *how)],
    numbers,
    st.integers(1, 12),
    st.sampled_from(["minmax", "minmax", "max", "all"]),
    st.integers(1, 5),
    st.sampled_from([0, 0, 0, 1, 19, 20, 21]),
    st.sampled_from(["", "", "[default7]:", "[rank1]:", "stamp"]),
)
interleaved = st.builds(
    lambda one, other: [line for pair in zip(one, other, strict=False) for line in pair],
    blocks_of_timers,
    blocks_of_timers,
)
"""Two ranks at once: a block is open for each."""
chapters = st.one_of(
    runs,
    steps,
    noise,
    wrapped,
    blocks_of_timers,
    interleaved,
    st.just(DUMP),
    st.just(TIMERS),
    st.just(TABLE),
    st.just(TABLE[:2]),
)
counters = st.integers(0, 12).map(lambda at: (0, 1, 2, 9, 10, 11, 20, 99, 100, 101, 110, 1000, 4321)[at])


def reported(number: int, kind: str, micro: int, rank: int, skipped: int = 0) -> str:
    """A line of DeepSpeed's own, as several ranks and versions print it."""
    lr = 3e-4 / (1 + number)
    body = {
        "step": f"step={number}, skipped={skipped}, lr=[{lr!r}, {lr / 3!r}], mom=[(0.9, 0.95), (0.9, 0.95)]",
        "nothing": f"step={number}, skipped={skipped}, lr=[], mom=[]",
        "throughput": f"epoch=0/micro_step={number * micro}/global_step={number}, RunningAvgSamplesPerSec={100 + lr}, "
        f"CurrSamplesPerSec=1{number % 10}.5, MemAllocated=2.{rank}GB, MaxMemAllocated=16.05GB",
        "micro": f"0/{number * micro}, SamplesPerSec={90 + lr}",
        "timers": f"time (ms) | fwd: {number % 100}.25 | bwd: 20{rank}.50 | bwd_inner: 190.00 | step: 12.{rank}5",
        "pipeline": f"steps: {number} loss: 2.{number:04d} iter time (s): 0.{500 + rank} samples/sec: 512.000",
        "flops": f"step {number} throughput_per_gpu_tflops: {number}.5",
        "iteration": f" iteration {number:8d}/    9000 | consumed samples: {number * 16:12d} | consumed tokens: {number * 999:12d} | "
        f"elapsed time per iteration (ms): {1000 + rank}.5 | learning rate: {lr:.3E} | global batch size:    16 | "
        f"lm loss: 2.{number:06d}E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 | "
        f"samples per second: {('15.9', '0.015')[rank % 2]} | TFLOPs: 141.{rank}0 |",
    }[kind]
    if kind == "iteration":
        return f"[default{rank}]:{body}" if rank else body
    module = "timer.py:264:stop" if kind in ("throughput", "micro") else "logging.py:128:log_dist"
    shown = body if kind in ("throughput", "micro", "pipeline", "flops") else f"[Rank {rank}] {body}"
    hour = 25 if number % 100 == 5 else 3  # no such time
    return f"[2026-01-02 {hour:02d}:04:{number % 60:02d},{number % 1000:03d}] [INFO] [{module}] {shown}"


KINDS = ("step", "throughput", "micro", "timers", "pipeline", "flops", "iteration", "nothing")
reports = st.builds(
    lambda first, count, kinds, micro, rank: [
        reported(first + at, kind, micro, rank) for at in range(count) for kind in kinds
    ],
    counters,
    st.integers(1, 40),
    st.one_of(
        st.just(["step", "throughput"]),
        st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
    ),
    st.sampled_from([1, 4]),
    st.sampled_from([0, 0, 0, 1, 7]),
)
engine = st.sampled_from(
    [
        ["[2026-01-02 03:04:00,000] [INFO] [logging.py:128:log_dist] [Rank 0] DeepSpeed info: version=0.14.0, git-hash=unknown, git-branch=unknown"],
        ["[2026-01-02 03:04:00,000] [INFO] [config.py:997:print]   gradient_accumulation_steps .. 4"],
        ["[2026-01-02 03:04:09,000] [INFO] [logging.py:128:log_dist] [Rank 0] [Torch] Checkpoint global_step20 is about to be saved!"],
        ["[2026-01-02 03:04:30,000] [INFO] [torch_checkpoint_engine.py:33:commit] [Torch] Checkpoint global_step20 is ready now!"],
        ["[2026-01-02 03:04:00,500] [INFO] [torch_checkpoint_engine.py:29:load] [Torch] Loading checkpoint from out/global_step20/mp_rank_00_model_states.pt..."],
        ["[2026-01-02 03:04:00,900] [INFO] [torch_checkpoint_engine.py:31:load] [Torch] Loaded checkpoint from out/global_step20/mp_rank_00_model_states.pt."],
        ["[2026-01-02 03:04:31,000] [INFO] [logging.py:128:log_dist] [Rank 0] Skipping backward and optimizer step for nan or inf"],
    ]
)  # fmt: skip
common = st.lists(chapters, min_size=1, max_size=25)
rare = st.builds(lambda before, part, after: [*before, part, *after], common, pieces, common)
logs = st.one_of(common, common, rare)
junk = st.sampled_from([b"", b"", b"\xff\xfe broken \xc3\n", b"a\0b\n", b"hole\0\0\0\0\0\0\0\0\0\0hole\n"])
ends = st.sampled_from([b"\n", b"\n", b"\r\n"])


of_deepspeed = st.lists(
    st.one_of(reports, reports, engine, noise, st.just(TABLE), st.just(TABLE[:2])), min_size=1, max_size=20
)


@st.composite
def contents(draw: st.DrawFn, of: st.SearchStrategy[list[list[str]]] = logs) -> bytes:
    """A log of many kinds of lines, its last line perhaps torn."""
    end = draw(ends)
    lines = [line.encode() + end for chapter in draw(of) for line in chapter]
    at = draw(st.integers(0, len(lines)))
    whole = b"".join((*lines[:at], draw(junk), *lines[at:]))
    return whole[: len(whole) - draw(st.sampled_from([0, 0, 1, 37]))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for the logs of all examples."""
    return tmp_path_factory.mktemp("logs")


@settings(
    max_examples=150,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a log is too long to be made smaller
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(contents(), min_size=1, max_size=2), st.integers(1, 6000), st.integers(1, 9000))
def test_any_cut_gives_the_same_run(folder: Path, texts: list[bytes], size: int, job: int):
    """Blocks of any size, ranges of any size, one file or two: the tables of the reference."""
    same_run(folder, texts, size, job, rule_parser("megatron"))


@settings(
    max_examples=150,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(contents(of_deepspeed), min_size=1, max_size=2),
    st.integers(1, 6000),
    st.integers(1, 9000),
    st.sampled_from(["deepspeed", "megatron_deepspeed", "gpt_neox"]),
)
def test_lines_that_explain_each_other_are_seen_in_order(
    folder: Path, texts: list[bytes], size: int, job: int, name: str
):
    """DeepSpeed's counters mean what earlier lines said: the parser sees every record, also of columns."""
    same_run(folder, texts, size, job, rule_parser(name))


def same_run(folder: Path, texts: list[bytes], size: int, job: int, parser: RuleParser) -> None:
    """The reference, in blocks and in ranges."""
    paths = [folder / f"{at}.log" for at in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text or b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        patch.setattr(crew, "JOB", job)
        patch.setattr(replay, "WORTH", 2)
        patch.setattr(replay, "SIZE", 1 + size % 40)
        reference = line_by_line(parser, paths)
        assert_same(reference, in_blocks(parser, paths))
        assert_same(reference, in_ranges(parser, paths))


@pytest.mark.parametrize(
    "path", [*FIXTURES, *REAL_LOGS], ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_real_layouts_give_the_same_run(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every fixture, and every real log that is at hand, in small blocks and small ranges."""
    monkeypatch.setattr(blocks, "SIZE", 3000)
    monkeypatch.setattr(crew, "JOB", 20_000)
    try:
        name = reading.choose(open_sources([path])).parser.name
    except FormatError:
        pytest.skip("no installed parser reads it")
    parser = rule_parser(name)
    reference = line_by_line(parser, [path])
    assert_same(reference, in_blocks(parser, [path]))
    assert_same(reference, in_ranges(parser, [path]))


def test_processes_give_the_same_run_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two processes on ranges of 20 kB, and none of them is left."""
    monkeypatch.setattr(crew, "JOB", 20_000)
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, *(step(number) for number in range(1, 400)), *TIMERS, *TABLE]) + "\n")
    parser = rule_parser("megatron")
    found = by_processes(parser, [path], 2)
    assert len(found.steps) == 399
    assert_same(line_by_line(parser, [path]), found)


def test_processes_read_compressed_files_side_by_side(tmp_path: Path):
    """One attempt in each of three gzip files; the last is cut off, and what it holds is read and the cut said."""
    paths = []
    for at in range(3):
        text = "\n".join([*DUMP, *(step(100 * at + number) for number in range(1, 100)), *TABLE]) + "\n"
        path = tmp_path / f"run-{at}.log.gz"
        packed = gzip.compress(text.encode())
        path.write_bytes(packed[:-2000] if at == 2 else packed)
        paths.append(path)
    parser = rule_parser("megatron")
    found = by_processes(parser, paths, 2)
    assert len(found.steps) > 198
    assert "ends early" in found.inputs[2].note
    assert_same(line_by_line(parser, paths), found)


def test_small_inputs_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A plain file counts with its size, several compressed ones with what they grow to, a single one not at all."""
    (tmp_path / "plain.log").write_text("line\n" * 100)
    for at in range(2):
        (tmp_path / f"{at}.log.gz").write_bytes(gzip.compress(os.urandom(500).hex().encode()))
    monkeypatch.setattr(crew, "WORTH", 1000)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    one, two, plain = (open_sources([tmp_path / name])[0] for name in ("0.log.gz", "1.log.gz", "plain.log"))
    assert [crew.hands(given) for given in ([one], [one, two], [plain])] == [0, 2, 0]


def test_a_killed_process_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its range is read by the process that merges."""
    monkeypatch.setattr(crew, "JOB", 20_000)
    monkeypatch.setattr(crew, "_start", _dead)
    path = tmp_path / "run.log"
    path.write_text("\n".join(step(number) for number in range(1, 200)) + "\n")
    parser = rule_parser("megatron")
    assert_same(line_by_line(parser, [path]), by_processes(parser, [path], 1))


def test_helpers_load_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder of logs may hold files that are called like our modules: they are not run."""
    (tmp_path / "logmfu").mkdir()
    for name in ("logmfu/__init__.py", "random.py", "numpy.py"):
        (tmp_path / name).write_text("open('RAN', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(crew, "JOB", 20_000)
    path = tmp_path / "run.log"
    path.write_text("\n".join(step(number) for number in range(1, 400)) + "\n")
    assert len(by_processes(rule_parser("megatron"), [path], 2).steps) == 399
    assert not (tmp_path / "RAN").exists()


def test_what_is_printed_while_python_starts_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A hook of the interpreter that prints (module systems have them) neither stops nor disturbs a helper."""
    (tmp_path / "sitecustomize.py").write_text("print('Time: loaded module'); print('more', end='')\n")
    monkeypatch.setattr(crew.sys, "path", [str(tmp_path), *crew.sys.path])
    monkeypatch.setattr(crew, "JOB", 20_000)
    path = tmp_path / "run.log"
    path.write_text("\n".join(step(number) for number in range(1, 400)) + "\n")
    parser, sources = rule_parser("megatron"), open_sources([path])
    with crew.Crew(1) as helpers:
        found = list(helpers.results(plan(parser), feed._jobs(sources)))
        assert not helpers._lost
    assert sum(result.count for _, result in found) == 399


def test_minus_zero_is_not_zero(tmp_path: Path):
    """Columns in which all values are equal keep the sign of each."""
    values = ["-0.0"] * 30 + ["0.0"] * 30 + ["-0.000000E+40"] * 5
    lines = [step(10 + at).replace("loss scale: 1.0", f"loss scale: {v}") for at, v in enumerate(values)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    parser = rule_parser("megatron")
    for run in (line_by_line(parser, [path]), in_blocks(parser, [path]), in_ranges(parser, [path])):
        assert [str(value) for value in run.steps["loss_scale"]] == [str(float(value)) for value in values]


def test_what_the_end_of_a_log_gives_comes_last(tmp_path: Path):
    """A block that is still open there, in a log whose last columns hold a line with an impossible date."""
    lines = [step(10 + at) for at in range(4)] + [step(14, stamp="2026-02-31 03:04:05")]
    lines += ["  successfully saved checkpoint from iteration      14 to /data/ckpt", *TABLE[:2]]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    parser = rule_parser("megatron")
    found = in_blocks(parser, [path])
    assert found.events["event"].tolist() == ["save_end", "process_failed"]
    assert_same(line_by_line(parser, [path]), found)


def test_digits_of_a_name_are_no_numbers(tmp_path: Path):
    """Lines of one shape with other columns."""
    lines = [step(10 + at, f" expert {at % 3} load: 0.{at}5 |") for at in range(30)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    parser = rule_parser("megatron")
    found = in_blocks(parser, [path])
    assert found.steps["expert_2_load"].notna().sum() == 10
    assert_same(line_by_line(parser, [path]), found)


def test_what_is_missing_is_nan_whatever_came_first(tmp_path: Path):
    """A column of text and numbers, in lines that come as records and as columns."""
    tails = [""] * 30 + [" foo: abc |", " foo: 1.5 |"] + [""] * 30
    path = tmp_path / "run.log"
    path.write_text("\n".join(step(10 + at, tail) for at, tail in enumerate(tails)) + "\n")
    parser = rule_parser("megatron")
    found = in_blocks(parser, [path])
    assert [value for value in found.steps["foo"] if value == value] == ["abc", 1.5]
    assert_same(line_by_line(parser, [path]), found)


def test_two_engines_with_nan_are_not_two(tmp_path: Path):
    """Equal lines say nothing; others of the same step do."""
    line = "[2026-01-02 03:04:05,000] [INFO] [logging.py:128:log_dist] [Rank 0] step={}, skipped=0, lr=[{}], mom=[0.9]"
    parser = rule_parser("deepspeed")
    for rates, several in ((["nan"] * 3, False), (["nan", "nan", "0.1"], True)):
        path = tmp_path / "run.log"
        path.write_text("\n".join(line.format(10, rate) for rate in rates) + "\n")
        found = in_blocks(parser, [path])
        assert ("engines_note" in found.facts) == several
        assert_same(line_by_line(parser, [path]), found)


def test_columns_first_seen_in_a_stretch_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first throughput lines do not fit, and are events: what the others show holds all the same."""
    monkeypatch.setattr(replay, "WORTH", 2)
    lines = [reported(at, "step", 1, 0) for at in (10, 11, 12, 13)]
    lines += [reported(at, "throughput", 1, 0) for at in (99, 98)]
    lines += [reported(at, kind, 1, 0) for at in range(14, 60) for kind in ("step", "throughput")]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    parser = rule_parser("deepspeed")
    assert_same(line_by_line(parser, [path]), in_blocks(parser, [path]))


def test_what_ranges_count_adds_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """NUL bytes in two ranges, and broken characters before and after a line that was cut in pieces."""
    monkeypatch.setattr(crew, "JOB", 3000)
    steps = "".join(f"{step(10 + at)}\n" for at in range(20)).encode()
    piece = b"2026-01-02T03:04:06.1Z stdout P cut \n2026-01-02T03:04:06.2Z stdout F off\n"
    path = tmp_path / "run.log"
    path.write_bytes(b"a\0b\n\xff\n" + steps + piece + steps + b"a\0b\n\xff\n")
    parser = rule_parser("megatron")
    for found in (line_by_line(parser, [path]), in_blocks(parser, [path]), in_ranges(parser, [path])):
        assert found.inputs[0].note == "2 NUL bytes dropped; 2 broken UTF-8 sequences replaced"


def test_a_file_that_shrinks_while_it_is_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was read counts; stamps of lines that are gone are not known."""
    monkeypatch.setattr(crew, "JOB", 3000)
    lines = [*(step(10 + at) for at in range(40)), "2026-01-02 03:04:06,123 INFO loader: shard 7 of 9"]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    parser = rule_parser("megatron")
    sources = open_sources([path])
    results = list(_results(parser, sources))
    os.truncate(path, 1000)
    builder = TableBuilder()
    feed.Feed(parser, builder).read(sources, iter(results))
    found = finished(builder, sources, parser)
    assert len(found.steps) == 40
    assert "became shorter" in found.inputs[0].note


def test_giving_up_half_way_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As an interrupt does: the first result is taken, then the crew is left by an exception."""
    monkeypatch.setattr(crew, "JOB", 20_000)
    path = tmp_path / "run.log"
    path.write_text("\n".join(step(number) for number in range(1, 1000)) + "\n")
    parser = rule_parser("megatron")
    sources = open_sources([path])
    helpers = crew.Crew(2)
    with pytest.raises(KeyboardInterrupt):
        _interrupted(helpers, parser, sources)
    assert all(process.poll() is not None for process in helpers._all)


def _interrupted(helpers: crew.Crew, parser, sources):
    with helpers:
        next(helpers.results(plan(parser), feed._jobs(sources)))
        raise KeyboardInterrupt


def _dead():
    process = START()
    process.kill()
    return process


START = crew._start

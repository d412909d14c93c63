"""From records to tables: one clock, attempts, one row per step, and nothing that is lost on the way."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logmfu
from logmfu.records import Line, Record
from logmfu.tables import Facts, TableBuilder, finish
from logmfu.tables.clock import one_clock, resolution
from logmfu.tables.rows import CHUNK_ROWS, Rows

NAN = float("nan")
BEGIN = datetime(2026, 3, 4, 5, 0, 0)


def stamp(seconds: float) -> str:
    """Text of a time so many seconds after the beginning."""
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def step(
    number: int, at: float | None = None, *, ms: float = 2000.0, loss: float = 2.0, more: str = ""
) -> str:
    """A step line in Megatron's layout."""
    when = "" if at is None else f"[{stamp(at)}] "
    return (
        f" {when}iteration {number:8d}/    1000 | consumed samples: {number * 64:12d} |"
        f" elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.000000E-04 | global batch size:    64 |"
        f" lm loss: {loss:.6E} |{more} loss scale: 1.0 | grad norm: 0.500 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def steps(numbers: Iterable[int], begin: float = 0.0) -> list[str]:
    """Step lines 20 s apart."""
    return [step(number, begin + 20.0 * index) for index, number in enumerate(numbers)]


ARGUMENTS = [
    "------------------------ arguments ------------------------",
    "  global_batch_size ............................... 64",
    "  hidden_size ..................................... 1024",
    "  log_interval .................................... 10",
    "  num_layers ...................................... 24",
    "  seq_length ...................................... 4096",
    "  world_size ...................................... 8",
    "-------------------- end of arguments ---------------------",
]


@pytest.fixture
def read(tmp_path: Path):
    """The run in some lines, or in several files of lines."""

    def reader(*files: list[str]) -> logmfu.Run:
        paths = [tmp_path / f"rank{number}.log" for number in range(len(files))]
        for path, lines in zip(paths, files, strict=True):
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return logmfu.read(paths)

    return reader


def test_rows_carry_time_and_place(read):
    """Wall clock without a zone, seconds since the first stamp, file and line."""
    table = read(["noise", *steps([10, 20, 30])]).steps
    assert table["time"].tolist() == [
        pd.Timestamp("2026-03-04 05:00:00") + pd.Timedelta(s, "s") for s in (0, 20, 40)
    ]
    assert table["elapsed_s"].tolist() == [0.0, 20.0, 40.0]
    assert table["line"].tolist() == [2, 3, 4]
    assert {Path(path).name for path in table["path"]} == {"rank0.log"}
    assert table["step_time_s"].tolist() == [2.0, 2.0, 2.0]


def test_fields_nobody_knows_are_kept(read):
    """A field without a column of its own becomes one under its own name."""
    table = read([step(10, 0, more=" z_loss: 1.250000E-01 | mood: fine |"), step(20, 20)]).steps
    assert table["z_loss"].iloc[0] == 0.125
    assert table["mood"].iloc[0] == "fine"
    assert table["mood"].isna().tolist() == [False, True]


def test_line_printed_twice_is_one_row(read):
    """By two ranks, or twice by one: a step of an attempt is a row."""
    once = steps([10, 20, 30])
    twice = [line for line in once for _ in range(2)]
    ranks = [f"{rank}: {line}" for line in once for rank in (6, 7)]
    assert len(read(once).steps) == len(read(twice).steps) == len(read(ranks).steps) == 3


def test_step_done_again_is_a_new_row_of_a_new_attempt(read):
    """The step number going back starts an attempt; both rows stay."""
    table = read([*steps([10, 20, 30, 40]), *steps([30, 40, 50], begin=500.0)]).steps
    assert table["step"].tolist() == [10, 20, 30, 40, 30, 40, 50]
    assert table["attempt"].tolist() == [1, 1, 1, 1, 2, 2, 2]


def test_arguments_again_are_a_new_attempt(read):
    """A process that starts again is another attempt even when its steps go on."""
    run = read([*ARGUMENTS, *steps([10, 20]), *ARGUMENTS, *steps([30, 40], begin=300.0)])
    assert run.steps["attempt"].tolist() == [1, 1, 2, 2]
    assert len(run.attempt_starts) == 2


def test_arguments_of_several_ranks_are_one_start(read):
    """Every rank may print its arguments; only a start after a step or an end is another one."""
    run = read([*ARGUMENTS, *ARGUMENTS, *steps([10, 20])])
    assert run.steps["attempt"].tolist() == [1, 1]


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_attempts_are_as_many_as_the_step_went_back(lengths: list[int]):
    """However long the attempts: each begins where the step goes back, and no row is lost."""
    numbers = [10 * (index + 1) for length in lengths for index in range(length)]
    records = [
        Record(
            "step", "step", {"step": number, "step_time_s": 1.0 + place}, Line("", "a.log", place), "step"
        )
        for place, number in enumerate(numbers, start=1)
    ]
    table = built(records).steps
    pairs = list(pairwise(numbers))
    again = sum(later == earlier for earlier, later in pairs)
    assert table["attempt"].max() == 1 + sum(later < earlier for earlier, later in pairs)
    assert len(table) == len(numbers) - again  # the same step straight away is the same row


def built(records: Iterable[Record]) -> logmfu.Run:
    """A run made of records."""
    builder = TableBuilder()
    for record in records:
        builder.add(record)
    return finish(builder, inputs=[], parser="test", title="Test")


def test_files_of_one_job_are_put_together(read):
    """Arguments in the first rank's file, steps in the last rank's: one run."""
    run = read(ARGUMENTS, steps([10, 20, 30]))
    assert run.facts["world_size"] == 8
    assert run.steps["step"].tolist() == [10, 20, 30]
    assert run.steps["attempt"].tolist() == [1, 1, 1]


def test_copies_by_several_ranks_are_one_run(read):
    """Two files that ran side by side print the same steps: one attempt, one row each."""
    run = read(steps([10, 20, 30]), steps([10, 20, 30], begin=1.0))
    assert run.steps["step"].tolist() == [10, 20, 30]
    assert set(run.steps["attempt"]) == {1}


def test_files_one_after_the_other_are_attempts(read):
    """A second file that begins later is what came after a restart."""
    run = read(steps([10, 20, 30]), steps([20, 30, 40], begin=900.0))
    assert run.steps["attempt"].tolist() == [1, 1, 1, 2, 2, 2]


def test_several_runs_in_one_file_are_pointed_out(read):
    """The same step with other times by one rank is no repetition: the first is used, and a note says so."""
    run = read([step(2, ms=2000.0), step(2, ms=3000.0), step(2, ms=4000.0)])
    assert len(run.steps) == 1
    assert run.steps["step_time_s"].tolist() == [2.0]
    assert any("repeat a step with other times" in note for note in run.notes)


def test_iterations_are_the_steps_a_line_speaks_for(read):
    """The distance to the line before; the first line speaks for a whole interval, or for what there was."""
    assert read([*ARGUMENTS, *steps([10, 20, 30])]).steps["iterations"].tolist() == [10, 10, 10]
    loaded = "  successfully loaded checkpoint from /ckpt/run [ t 1/1, p 1/1 ] at iteration 24"
    again = [*ARGUMENTS, *steps([10, 20]), *ARGUMENTS, loaded, *steps([30, 40], begin=200.0)]
    assert read(again).steps["iterations"].tolist() == [10, 10, 6, 10]


def test_events_and_timers_know_their_step_and_attempt(read):
    """A line without a step of its own stands after the last step printed before it."""
    saved = "  successfully saved checkpoint from iteration      20 to /ckpt/run [ t 1/1, p 1/1 ]"
    timers = [
        "(min, max) time across ranks (ms):",
        "    save-checkpoint ................................: (900.00, 1000.00)",
    ]
    run = read(
        [*steps([10, 20]), saved, *timers, *steps([30, 40], begin=60.0), *steps([30], begin=200.0), *timers]
    )
    (event,) = run.events.to_dict("records")
    assert (event["event"], event["step"], event["attempt"], event["line"]) == ("save_end", 20, 1, 3)
    assert run.timers["step"].tolist() == [20, 30]
    assert run.timers["attempt"].tolist() == [1, 2]
    assert run.timers[["seconds", "min_s", "max_s"]].to_numpy().tolist() == [[1.0, 0.9, 1.0]] * 2


def test_collector_fills_in_where_the_program_prints_no_time(read):
    """A collector's stamp is the clock of lines that have none of their own."""
    lines = [
        f"2026-03-04T05:00:{second:02d}.000000000Z stdout F {step(10 + second)}" for second in (0, 20, 40)
    ]
    table = read(lines).steps
    assert table["elapsed_s"].tolist() == [0.0, 20.0, 40.0]


def loader(at: float) -> str:
    """A line of some library, which no rule reads."""
    return f"{stamp(at)},000 INFO data.loader: shard opened"


HOUR = 3600.0


def test_a_process_whose_start_nobody_prints_begins_with_its_first_line(read):
    """Steps go back after a pause of 1,000 s; the start-up line before them is of the second attempt."""
    began = f"[after megatron is initialized] datetime: {stamp(1080)} "
    run = read([*steps(range(1, 6)), began, *steps(range(1, 6), 1100.0)])
    assert [start - run.start for start in run.attempt_starts] == [0, 1080]
    assert [end - run.start for end in run.attempt_ends] == [80, 1180]


def test_what_stands_before_a_failure_is_of_the_attempt_that_failed(read):
    """A job hangs for a thousand seconds while a library goes on, dies, and starts again a minute later."""
    lines = [
        *ARGUMENTS,
        *steps(range(1, 6)),
        *(loader(at) for at in range(180, 1081, 100)),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        *ARGUMENTS,
        *steps(range(4, 9), 1140.0),
    ]
    run = read(lines)
    assert [end - run.start for end in run.attempt_ends] == [1080, 1220]
    assert [start - run.start for start in run.attempt_starts] == [0, 1140]


@pytest.mark.parametrize("ahead", [8 * HOUR, -8 * HOUR, 0.5 * HOUR])
def test_other_lines_on_a_clock_of_their_own_are_moved(read, ahead: float):
    """A library prints UTC, the program local time: starting took 30 s, ten steps 180 s, and for three hours nothing came."""
    lines = [line for at in range(10) for line in (step(at + 1, 20.0 * at), loader(20 * at + 5 + ahead))]
    run = read([loader(ahead - 30), *lines, loader(180 + 3 * HOUR + ahead)])
    assert run.end - run.start == 30 + 180 + 3 * HOUR
    assert run.steps["elapsed_s"].iloc[0] == 30
    assert run.attempt_ends == (run.end,)
    assert len(run.notes) == 1
    assert f"{abs(ahead) / 3600:.2g} h {'ahead of' if ahead > 0 else 'behind'}" in run.notes[0]
    assert "moved" in run.notes[0]


@pytest.mark.parametrize("ahead", [-40 * 24 * HOUR, 8 * HOUR + 420, 12 * HOUR + 0.4 * HOUR])
def test_a_date_that_is_no_zone_away_moves_nothing(read, ahead: float):
    """A line between the steps begins with an old date, or one that is no quarter of an hour off: no line is moved by it."""
    lines = [step(1, 0.0), loader(5 + ahead), *steps(range(2, 11), 20.0), loader(181)]
    run = read(lines)
    assert run.end - run.start == 181
    assert run.notes == ()


def test_a_step_line_without_a_stamp_tells_no_zone(read):
    """One of the lines around a stray one has no stamp: nothing to compare, and nothing fails."""
    for lines in (
        [step(1), loader(5 + 8 * HOUR), *steps(range(2, 5), 20.0)],
        [step(1, 0.0), loader(5 - 8 * HOUR), step(2), *steps(range(3, 5), 40.0)],
    ):
        assert len(read(lines).steps) == 4


def test_step_lines_far_apart_do_not_tell_the_zone(read):
    """Forty minutes between two step lines: three quarters of an hour would fit, so the stamps do not count."""
    hours = [2400.0 * at for at in range(5)]
    lines = [step(at + 1, second) for at, second in enumerate(hours)]
    run = read([*lines[:1], loader(1200 - 8 * HOUR), *lines[1:], loader(9700 - 8 * HOUR)])
    assert run.end - run.start == 9600
    assert "only lines that were understood give times" in run.notes[0]


def test_a_clock_that_is_off_by_nobody_knows_how_much_does_not_count(read):
    """No line between the steps: that the first one is later than a step shows another clock, and not which."""
    run = read([loader(5 * HOUR), *steps(range(1, 11)), loader(181 + 5.3 * HOUR)])
    assert run.end - run.start == 180
    assert len(run.notes) == 1
    assert "about 5 h ahead of" in run.notes[0]
    assert "only lines that were understood give times" in run.notes[0]


def test_the_last_stamp_before_a_failure_is_moved_too(read):
    """A job that ran 180 s and hung 1,000 s, while a library went on in UTC, then failed, and started a minute later."""
    lines = [
        *ARGUMENTS,
        *(line for at in range(10) for line in (step(at + 1, 20.0 * at), loader(20 * at + 5 - 8 * HOUR))),
        loader(1180 - 8 * HOUR),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        *ARGUMENTS,
        *steps(range(8, 12), 1240.0),
    ]
    run = read(lines)
    assert [end - run.start for end in run.attempt_ends] == [1180, 1300]
    assert [start - run.start for start in run.attempt_starts] == [0, 1240]


def test_pieces_of_a_log_with_two_clocks_are_one_log(read):
    """Pieces that show the offset say so for one whose ends could be right as they are."""
    pieces = [
        [loader(100 * at - 8 * HOUR), *steps(range(5 * at + 1, 5 * at + 6), 100.0 * at)] for at in range(3)
    ]
    pieces[1].append(loader(185 - 8 * HOUR))
    run = read(*pieces)
    assert run.end - run.start == 280
    assert len(run.attempt_starts) == 1


def test_quiet_before_and_after_the_steps_is_time(read):
    """Nothing contradicts stamps that are far away on the right side: starting took an hour, the end hung for two."""
    run = read([loader(-HOUR), *steps(range(1, 11)), loader(180 + 2 * HOUR)])
    assert run.end - run.start == 3 * HOUR + 180
    assert run.notes == ()


def test_lines_in_a_wrong_order_are_no_second_clock(read):
    """Lines that come up to ten minutes late or early are no zone; the steps around them count."""
    run = read([loader(300), *steps(range(1, 41)), loader(480)])
    assert run.end - run.start == 780
    assert run.notes == ()


def test_two_clocks_become_one():
    """The collector is an hour off (another zone) and a second late: its stamps move by the hour."""
    inner = np.array([3600.0, NAN, 3620.0])
    outer = np.array([1.0, 11.0, 21.0])
    times, offset = one_clock(inner, outer)
    assert offset == 3600.0
    assert times.tolist() == [3600.0, 3611.0, 3620.0]


@given(late=st.floats(0.0, 400.0), quarters=st.integers(-56, 56))
def test_zones_are_told_from_delay(late: float, quarters: int):
    """Up to half a quarter of an hour is delay, the rest a zone."""
    zone = quarters * 900.0
    inner = np.array([1000.0, 2000.0, 3000.0])
    assert one_clock(inner, inner - zone + late)[1] == zone


@pytest.mark.parametrize(
    ("times", "step_s"),
    [([1.0, 2.0, NAN], 1.0), ([1.0, 2.5], 1e-3), ([1.123456, 2.0], 1e-6), ([], 1.0)],
)
def test_resolution_is_the_finest_decimal(times: list[float], step_s: float):
    """Whole seconds, milliseconds, or microseconds."""
    assert resolution(np.array(times)) == step_s


def test_the_last_statement_of_a_fact_holds():
    """A restart may state other arguments; the earlier ones stay in the history."""
    facts = Facts()
    for line, size in enumerate((64, 64, 32), start=1):
        facts.add("world_size", size, "run.log", line)
    assert facts["world_size"] == 32
    assert facts.where("world_size") == (32, "run.log", 3)
    assert [stated.line for stated in facts.history("world_size")] == [1, 3]
    assert dict(facts) == {"world_size": 32}


def test_true_is_not_one():
    """A switch and a number are different statements."""
    facts = Facts()
    facts.add("glu", 1)
    facts.add("glu", True)
    assert len(facts.history("glu")) == 2


def test_many_rows_are_kept_in_order():
    """More rows than a chunk holds come out as they went in."""
    rows = Rows()
    count = CHUNK_ROWS + 5
    for number in range(count):
        place = {"rule": "step", "path": "run.log"}
        rows.add({"step": number, **place, **({"loss": 1.0} if number % 2 else {})}, number)
    frame = rows.frame()
    assert frame["step"].tolist() == list(range(count))
    assert int(frame["loss"].notna().sum()) == count // 2


BATCHES = st.lists(
    st.dictionaries(
        st.sampled_from("abc"),
        st.one_of(
            st.integers(-3, 3), st.floats(-2, 2), st.just(NAN), st.none(), st.sampled_from(["x", "y"])
        ),
        min_size=1,
    ),
    max_size=8,
)
"""Values of the columns of some rows, a dict each."""


@given(st.lists(st.tuples(BATCHES, st.booleans()), max_size=5))
def test_rows_come_out_as_they_went_in(batches):
    """Row by row or as columns, whatever is missing, and whatever type a column turns out to have."""
    rows, put = Rows(), []
    for batch, as_columns in batches:
        places = range(len(put), len(put) + len(batch))
        put += batch
        if as_columns:
            names = {name for row in batch for name in row}
            columns = {name: [row.get(name) for row in batch] for name in names}
            rows.add_columns(columns, np.array(places, dtype=np.int64))
        else:
            for row, place in zip(batch, places, strict=True):
                rows.add(row, place)
    frame = rows.frame()
    assert len(frame) == len(put)
    for name in frame:
        found = [None if value != value else value for value in frame[name].tolist()]
        assert found == [None if (v := row.get(name)) is None or v != v else v for row in put]


def test_numbers_stay_whole_while_none_is_missing():
    """Integers are integers; with one missing they are floats, which hold it."""
    rows = Rows()
    rows.add_columns({"step": np.array([1, 2]), "batch": 8, "loss": np.array([3, 4])}, np.array([0, 1]))
    rows.add_columns({"step": np.array([3, 4]), "batch": 8}, np.array([2, 3]))
    frame = rows.frame()
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "int64", "float64"]
    assert frame["batch"].tolist() == [8, 8, 8, 8]
    assert frame["loss"].tolist()[:2] == [3.0, 4.0]
    assert frame["loss"].isna().tolist() == [False, False, True, True]


def test_every_value_can_be_written_to_and_changes_no_other(read):
    """Columns that are the same are held once; what is written to one of them does not show in the other."""
    table = read([f"rank 0: {line}" for line in steps([10, 20, 30])]).steps
    for name in table.columns:
        before = table.copy(deep=True)
        table.loc[0, name] = table[name].iloc[-1]
        table.loc[1, name] = None
        pd.testing.assert_frame_equal(table.drop(columns=name), before.drop(columns=name))


def test_rows_that_come_late_are_put_in_their_place():
    """A number that all rows have needs no place; texts and numbers that differ move with their row."""
    rows = Rows()
    rows.add_columns({"step": np.array([1, 4]), "batch": 8, "path": "a.log"}, np.array([0, 3]))
    rows.add_columns({"step": np.array([2, 3]), "batch": 8, "path": "b.log"}, np.array([1, 2]))
    frame = rows.frame()
    assert frame["step"].tolist() == [1, 2, 3, 4]
    assert frame["batch"].tolist() == [8, 8, 8, 8]
    assert frame["path"].tolist() == ["a.log", "b.log", "b.log", "a.log"]


def test_moments_are_whole_microseconds(read):
    """A time that floats hold a hair below a microsecond is that microsecond."""
    lines = [line.replace("]", ".000001]", 1) for line in steps([10, 20, 30])]
    assert [moment.microsecond for moment in read(lines).steps["time"]] == [1, 1, 1]


def test_a_number_too_large_to_be_exact_is_missing(read):
    """Integers are compared with floats: one that these do not hold is worse than none."""
    lines = [
        line.replace("global batch size:    64", f"global batch size: {2**60 + 1}")
        for line in steps([10, 20])
    ]
    assert read(lines).steps["global_batch_size"].isna().all()


def test_lines_are_accounted_for(read):
    """Every line was understood, nearly understood, or neither."""
    counts = read(["hello", *steps([10, 20]), " iteration 30 elapsed time per iteration (torn"]).coverage
    assert (counts.lines, counts.matched, counts.near_misses, counts.other) == (4, 2, 1, 1)
    assert [(miss.line, miss.rule) for miss in counts.examples] == [(4, "iteration")]

"""Incident lines become events with their details; ordinary training text gives none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logmfu.envelopes import Envelopes
from logmfu.failures import RULES
from logmfu.parsing import Block, Rule, Sample, run_rules
from logmfu.records import Record
from logmfu.schema import EVENTS

SAMPLES = [
    pytest.param(rule, sample, id=f"{rule.name}-{number}")
    for rule in RULES
    for number, sample in enumerate(rule.samples)
]
QUIET = {"process_exit", "queued", "started"}
TORN = [sample.text for rule in RULES for sample in rule.samples]


def records(text: str) -> list[Record]:
    """What the rules find in raw text, its prefixes taken off first."""
    raw = enumerate(text.split("\n"), 1)
    return list(run_rules(RULES, Envelopes(year=2023).lines(raw)))


@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_each_sample_gives_one_event_with_its_values(rule: Rule | Block, sample: Sample) -> None:
    """One line, one event: no second rule reads the same line, and nothing is a near miss."""
    (record,) = records(sample.text)
    assert (record.kind, record.rule) == ("event", rule.name)
    assert {key: record.values.get(key) for key in sample.values} == pytest.approx(dict(sample.values))


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.name) for rule in RULES])
def test_each_rule_is_proven_and_known(rule: Rule | Block) -> None:
    """Every rule has a sample, a needle the sample contains, and an event name of the schema."""
    assert rule.samples
    assert all(rule.needle in sample.text for sample in rule.samples)
    assert (rule.event or rule.name) in EVENTS


def test_rule_names_are_unique() -> None:
    """A near miss names its rule."""
    names = [rule.name for rule in RULES if isinstance(rule, Rule)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("text", TORN)
def test_every_incident_says_its_role(text: str) -> None:
    """Cause, symptom or teardown; only good news has none."""
    for record in records(text):
        assert record.name in QUIET or record.values["role"] in {"cause", "symptom", "teardown"}


TABLE = """\
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2023-11-14_22:13:22
  host      : gpu-9
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 911)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 911
[2]:
  time      : 2023-11-14_22:13:23
  host      : gpu-9
  rank      : 6 (local_rank: 2)
  exitcode  : -15 (pid: 912)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 912
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2023-11-14_22:13:20
  host      : gpu-9
  rank      : 4 (local_rank: 0)
  exitcode  : -6 (pid: 910)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 910
============================================================"""


@pytest.mark.parametrize("prefix", ["", "3: ", "[1,0]<stderr>:"])
def test_torchruns_table_gives_one_event_for_each_process(prefix: str) -> None:
    """Each entry with its own time, rank and exit code; the root cause is marked."""
    text = "\n".join(prefix + line for line in TABLE.split("\n"))
    envelopes = Envelopes()
    envelopes.learn(text.split("\n"))
    found = list(run_rules(RULES, envelopes.lines(enumerate(text.split("\n"), 1))))
    shown = [
        (r.name, r.values["rank"], r.values["exitcode"], r.values["time"] - 1.7e9, r.values.get("root"))
        for r in found
    ]
    assert shown == [
        ("process_failed", 5, -15, 2, None),
        ("process_failed", 6, -15, 3, None),
        ("process_failed", 4, -6, 0, True),
    ]


def test_a_stalled_collective_says_since_when() -> None:
    """The line's time and how long the operation had run give the beginning of the stall."""
    (record,) = records(
        "[rank3]:[E1114 22:13:20.000000000 ProcessGroupNCCL.cpp:6] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600500 milliseconds before timing out."
    )
    assert record.line.time == 1.7e9
    assert record.line.rank == 3
    assert record.values["ran_for_s"] == 600.5


def test_two_incidents_glued_into_one_line_are_both_read() -> None:
    """Dying processes write into each other's lines."""
    text = (
        "5%| 1/20 [00:12<00:01]slurmstepd: error: *** JOB 47 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 DUE TO TIME LIMIT ***"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish."
    )
    assert {record.name for record in records(text)} == {"time_limit", "terminating"}


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (
            "slurmstepd: error: *** JOB 47 CANCELLED AT 2023-11-14T22:13:20 DUE TO TIME LIMIT on gpu-9 ***",
            "time_limit",
        ),
        (
            "slurmstepd: error: *** JOB 47 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "node_failure",
        ),
        ("1: slurmstepd: error: *** STEP 47.0 ON gpu-9 CANCELLED AT 2023-11-14T22:13:20 ***", "cancelled"),
        ("srun: error: gpu-9: task 3: Exited with exit code 1", "process_failed"),
        ("[rank3]: RuntimeError: CUDA error: device-side assert triggered", "cuda_error"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "oom"),
        ("AssertionError", "exception"),
        ("[rank3]: a.b.FooError: ", "exception"),
        ("(raylet) [a.cc:1] 1 Workers (tasks / actors) killed due to memory pressure (OOM)", "host_oom"),
    ],
)
def test_variants_of_a_line_give_the_same_event(text: str, event: str) -> None:
    """Word order changed over the years; prefixes differ by site."""
    assert [record.name for record in records(text)] == [event]


ORDINARY = [
    " [2023-11-15 12:00:00.500000] iteration        5/     100 | consumed samples:           40 | elapsed time per iteration (ms): 1000.5 | lm loss: 2.5E+00 | number of nan iterations:   0 |",
    "[2023-11-15 12:00:00,500] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-4]",
    "[2023-11-15 12:00:00,500] [INFO] [config.py:959:print]   checkpoint_tag_validation_fail  False",
    "  error_injection_rate ............................ 0",
    "  error_injection_type ............................ transient_error",
    "  logits_load_ignore_errors ....................... False",
    "  max_tokens_to_oom ............................... 12000",
    "  exit_signal ..................................... Signals.SIGTERM",
    "NCCL_ASYNC_ERROR_HANDLING=1",
    "[rank0]:[W1115 12:00:00.500000000 ProcessGroupNCCL.cpp:12] Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. (function operator())",
    "[W Utils.hpp:135] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated (function getCvarInt)",
    "UserWarning: Failed to load image Python extension: Error",
    "Error: 5.2% mean absolute error",
    '        raise ValueError(f"Unknown optimizer kind")',
    "    except KeyboardInterrupt:",
    '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
    "gpu-9:910:915 [0] NCCL WARN MSCCL++: Cannot enable MSCCL++ on this system",
    "gpu-9:910:915 [0] NCCL INFO Connected all rings",
    "If you run out of memory, lower the batch size",
    "[exiting program at iteration 100] datetime: 2023-11-15 12:00:00",
    "Terminated early: no",
    "INFO:torch.distributed.elastic.agent.server.api:[default] worker group successfully finished.",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_no_incident(text: str) -> None:
    """Argument dumps, warnings, quoted source and the end of a good run give nothing, not even a near miss."""
    assert records(text) == []


@given(st.lists(st.sampled_from(TORN), min_size=1, max_size=3), st.data())
def test_damage_never_raises(texts: list[str], data: st.DataObject) -> None:
    """Lost, doubled and foreign characters and glued lines give fewer events or near misses."""
    text = "".join(texts)
    start = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    other = data.draw(
        st.one_of(st.text(max_size=4), st.just(text[start : start + length] * 2), st.just("9" * 400))
    )
    for record in records(text[:start] + other + text[start + length :]):
        assert record.kind in {"event", "near_miss"}


@pytest.mark.parametrize(
    "unit", ["Rank 1] ", "CUDA error: ", "A" * 9 + ".", "NCCL WARN ", "9:", "(ms)=1", "[rank1]:", " "]
)
def test_long_hostile_lines_finish(unit: str) -> None:
    """Patterns are linear: a line of half a million characters neither hangs nor is given up."""
    text = unit * (500_000 // len(unit)) + "XError"
    assert not [
        record for record in records(text) if record.values.get("reason") == "the pattern took too long"
    ]

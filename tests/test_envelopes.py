"""Prefixes come off, what they say is kept, and a program's own text stays whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logmfu.envelopes import Envelopes, strip
from logmfu.envelopes.partials import LIMIT
from logmfu.records import Line

NOON = 1_700_049_600.0
"""2023-11-15 12:00:00 of a clock that counts as UTC."""

ONE_PREFIX = [
    ("[default3]:MSG", {"local_rank": 3}),
    ("[rank3]: MSG", {"rank": 3}),
    ("[rank3-group_rank0-attempt1]:MSG", {"rank": 3}),
    ("[rank1]:[rank9]: MSG", {"rank": 9, "local_rank": 1}),
    (
        "[rank3]:[E1115 12:00:00.500000000 Group.cpp:62] MSG",
        {"rank": 3, "time": NOON + 0.5, "level": "ERROR", "origin": "Group.cpp:62"},
    ),
    ("[E Group.cpp:62] MSG", {"level": "ERROR", "origin": "Group.cpp:62"}),
    (
        "[rank3]:W1115 12:00:00.250000 42 site-packages/x/run.py:79] MSG",
        {"rank": 3, "time": NOON + 0.25, "level": "WARNING", "origin": "site-packages/x/run.py:79"},
    ),
    (
        "V1115 12:00:00.250000 42 a/guards.py:47] [0/1] MSG",
        {"time": NOON + 0.25, "level": "DEBUG", "origin": "a/guards.py:47"},
    ),
    ("I1115 12:00:00.000000 140123 file.py:2] MSG", {"time": NOON, "level": "INFO", "origin": "file.py:2"}),
    (
        "E0000 00:00:1700049600.500000    42 file.cc:1] MSG",
        {"time": NOON + 0.5, "utc_offset": 0, "level": "ERROR", "origin": "file.cc:1"},
    ),
    (
        "[2023-11-15 12:00:00,500] a.b.run: [WARNING] MSG",
        {"time": NOON + 0.5, "level": "WARNING", "origin": "a.b.run"},
    ),
    (
        "[2023-11-15 12:00:00,500] [INFO] [logging.py:96:log_dist] MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "logging.py:96:log_dist"},
    ),
    (
        "[2023-11-15 12:00:00] [NODE-0(gpu-9)] [INFO] MSG",
        {"time": NOON, "level": "INFO", "host": "gpu-9"},
    ),
    (
        "[2023-11-15 12:00:00] INFO     [a.train:13, rank=2] MSG",
        {"time": NOON, "level": "INFO", "origin": "a.train:13", "rank": 2},
    ),
    ("[2023-11-15 12:00:00.500000] MSG", {"time": NOON + 0.5}),
    (" [2023-11-15 12:00:00] MSG", {"time": NOON}),
    (
        "[20231115 12:00:00][rank-7/8][INFO]     [---trainer.py:21] : MSG",
        {"time": NOON, "rank": 7, "level": "INFO", "origin": "trainer.py:21"},
    ),
    (
        "[\x1b[32m20231115 12:00:00\x1b[0m][\x1b[36mrank-7/8\x1b[0m]\x1b[1m[INFO]     \x1b[0m\x1b[1m[-trainer.py:21] : MSG\x1b[0m",
        {"time": NOON, "rank": 7, "level": "INFO", "origin": "trainer.py:21"},
    ),
    ("WARNING:a.b.api:MSG", {"level": "WARNING", "origin": "a.b.api"}),
    ("INFO 11-15 12:00:00 file.py:12] MSG", {"time": NOON, "level": "INFO", "origin": "file.py:12"}),
    (
        "INFO 11-15 12:00:00 [__init__.py:24] MSG",
        {"time": NOON, "level": "INFO", "origin": "__init__.py:24"},
    ),
    ("INFO [2023-11-15 12:00:00] >> MSG", {"time": NOON, "level": "INFO"}),
    ("[INFO 2023-11-15 12:00:00] MSG", {"time": NOON, "level": "INFO"}),
    (
        "[INFO|file.py:12] 2023-11-15 12:00:00,500 >> MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "file.py:12"},
    ),
    ("[Foo I 2023-11-15 12:00:00 mod:39] MSG", {"time": NOON, "level": "INFO", "origin": "mod:39"}),
    (
        "[11/15/23 12:00:00] INFO     MSG            file.py:12",
        {"time": NOON, "level": "INFO", "origin": "file.py:12"},
    ),
    (
        "2023-11-15 12:00:00,500 - name - INFO - MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "name"},
    ),
    (
        "2023-11-15 12:00:00,500 some-toolkit INFO     MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "some-toolkit"},
    ),
    (
        "2023-11-15 12:00:00.500 | INFO     | mod:func:12 - MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "mod:func:12"},
    ),
    (
        "2023-11-15 12:00:00.500000: I a/b.cc:19] MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "a/b.cc:19"},
    ),
    (
        "[app] 2023-11-15 12:00:00,500 - root - INFO - MSG",
        {"time": NOON + 0.5, "level": "INFO", "origin": "root"},
    ),
    ("2023-11-15 12:00:00 MSG", {"time": NOON}),
    ("[Wed Nov 15 12:00:00 2023] MSG", {"time": NOON}),
    ("[Wed Nov 15 12:00:00 CET 2023] MSG", {"time": NOON}),
    ("2023-11-15T12:00:00.5Z MSG", {"outer_time": NOON + 0.5, "utc_offset": 0}),
    ("2023-11-15T12:00:00.500000000+01:00 MSG", {"outer_time": NOON + 0.5, "utc_offset": 3600}),
    (
        "2023-11-15T12:00:00.5Z stdout F MSG",
        {"outer_time": NOON + 0.5, "utc_offset": 0, "stream": "stdout"},
    ),
    (
        "[pod/train-0/main] 2023-11-15T12:00:00Z MSG",
        {"outer_time": NOON, "utc_offset": 0, "host": "train-0"},
    ),
    ("1700049600500\tMSG", {"outer_time": NOON + 0.5, "utc_offset": 0}),
    ("Nov 15 12:00:00 gpu-9 python[42]: MSG", {"outer_time": NOON, "host": "gpu-9"}),
    ("Nov 15 12:00:00 gpu-9 kernel: [12345.678901] MSG", {"outer_time": NOON, "host": "gpu-9"}),
    (
        "2023-11-15T12:00:00-0800 gpu-9 python[42]: MSG",
        {"outer_time": NOON, "utc_offset": -28800, "host": "gpu-9"},
    ),
    ("Nov 15 12:00:00 MSG", {"outer_time": NOON}),
    ("Wed Nov 15 12:00:00 2023<stderr>:MSG", {"outer_time": NOON, "stream": "stderr"}),
    ("[1,3]<stdout>:MSG", {"rank": 3, "stream": "stdout"}),
    ("[1,3][gpu-9:42]<stderr>: MSG", {"rank": 3, "stream": "stderr", "host": "gpu-9"}),
    ("[1,mpirank:3,algo-1]<stdout>:MSG", {"rank": 3, "stream": "stdout", "host": "algo-1"}),
    ("\x1b[36m(Worker pid=42, ip=10.0.0.9)\x1b[0m MSG", {"host": "10.0.0.9"}),
    ("(pid=42) MSG [repeated 7x across cluster]", {}),
    (
        r'{"log":"\u001b[31mMSG\u001b[0m\n","stream":"stderr","time":"2023-11-15T12:00:00.5Z"}',
        {"outer_time": NOON + 0.5, "utc_offset": 0, "stream": "stderr"},
    ),
    ("\x1b[1m\x1b[31mMSG\x1b[0m\x1b[K", {}),
    ("^[[31mMSG^[[0m", {}),
    ("\x1b]0;title\x07MSG", {}),
]

OWN_TEXT = [
    "[after training is done] datetime: 2023-11-15 12:00:00 ",
    "[exiting program at iteration 3] datetime: 2023-11-15 12:00:00 ",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step.",
    "[Torch] Checkpoint x is about to be saved!",
    "[Gloo] Rank 0 is connected to 0 peer ranks.",
    "[rank-10]: Saving a file",
    "[0] MSG",
    "steps: 100 loss: 2.5 iter time (s): 0.5",
    "step: 10",
    "iteration: 5 | loss: 2.5",
    " iteration        5/     100 | lm loss: 2.5 |",
    "INFO: ready",
    "Error: no",
    "{'loss': 2.5, 'epoch': 0.1}",
    '{"loss": 2.5}',
    "0: loss",
    "worker-1: hello there",
    "2023-11-15",
    "[2023-13-45 12:00:00] no such day",
    "[2023-11-15 25:61:00] no such time",
    "Mar is a month",
    "[20231345 12:00:00][rank-7/8] : no such day",
    "[Foo I 2023-13-45 12:00:00 mod:39] no such day",
    "[INFO 2023-13-45 12:00:00] no such day",
    "[13/45/23 12:00:00] INFO     no such day",
    "[Wed Nov 45 12:00:00 2023] no such day",
    "2023-13-45 12:00:00 no such day",
    "2023-13-45T12:00:00Z stdout F no such day",
    "2023-11-15T12:00:00Zwhat",
    "2023-11-15 12:00:00,500what",
    "INFO [2023-13-45 12:00:00] >> no such day",
    "(see worker 42) text",
    '{"log": ["no", "text"], "stream": "stdout"}',
    '{"log": "torn',
    "  mom=[(0.9, 0.95)], [rank0]: 1.5, [rank1]: 2.5",
]


def shown(line: Line) -> dict[str, object]:
    """What the prefixes said."""
    fields = line._asdict()
    return {
        name: fields[name]
        for name in fields
        if name not in {"text", "path", "number"} and fields[name] is not None
    }


@pytest.mark.parametrize(("raw", "expected"), ONE_PREFIX)
def test_a_prefix_comes_off_and_what_it_says_is_kept(raw: str, expected: dict[str, object]) -> None:
    """Each known layout leaves the message and fills the fields it names, and no others."""
    (line,) = Envelopes("run.log", year=2023).take(7, raw)
    assert (line.text, line.path, line.number) == ("MSG", "run.log", 7)
    assert shown(line) == pytest.approx(expected)


@pytest.mark.parametrize("raw", OWN_TEXT)
def test_own_text_stays_whole(raw: str) -> None:
    """What looks like a prefix and is the program's own text is left alone."""
    line = strip(raw)
    assert line.text == raw
    assert shown(line) == {}


def test_a_named_rank_is_read_and_stays_in_the_text() -> None:
    """``[Rank 3]`` belongs to the message; it also says who wrote it."""
    line = strip("[2023-11-15 12:00:00,000] [INFO] [logging.py:9:log] [Rank 3] step=1")
    assert (line.text, line.rank, line.time) == ("[Rank 3] step=1", 3, NOON)


def test_a_line_that_is_only_a_prefix_has_empty_text() -> None:
    """A stamp with nothing behind it stays a line."""
    assert strip("[2023-11-15 12:00:00]")[0] == ""
    assert strip("[default0]:")[0] == ""


def test_prefixes_nest() -> None:
    """Collector, label, launcher and logger come off in turn; the innermost time is the line's time."""
    line = strip(
        "2023-11-15T12:00:30Z stdout F 2: [default1]:[2023-11-15 12:00:00.250000] iteration 5/ 10 |"
    )
    assert line.text == "iteration 5/ 10 |"
    assert (line.time, line.outer_time, line.utc_offset) == (NOON + 0.25, NOON + 30, None)
    assert (line.local_rank, line.rank, line.host, line.stream) == (1, None, "task 2", "stdout")


def test_numbered_labels_are_ranks_once_the_file_shows_them() -> None:
    """``srun --label`` numbers every line; one numbered line proves nothing."""
    envelopes = Envelopes()
    envelopes.learn(["starting", "0: one", "1: one", " 0: two", "1: two"])
    (line,) = envelopes.take(9, "12:   three")
    assert (line.text, line.rank) == ("  three", 12)


def test_few_numbered_lines_among_others_are_text() -> None:
    """A repeated numbered list in a log of other lines is no label."""
    envelopes = Envelopes()
    envelopes.learn(["1: a", "x", "y", "z", "1: a", *"uvw"])
    assert envelopes.take(1, "1: a")[0].text == "1: a"


def test_a_numbered_task_with_local_ranks_is_a_place_and_no_rank() -> None:
    """A task that starts several ranks gives its number to none of them, in any line of the file."""
    envelopes = Envelopes()
    envelopes.learn(["5: [default0]:a", "5: [default1]:b", "5: c"])
    (line,) = envelopes.take(1, "5: from the launcher")
    assert (line.text, line.rank, line.host) == ("from the launcher", None, "task 5")


def test_hosts_are_prefixes_once_seen_twice() -> None:
    """A host-like word on two lines with text behind it is a host."""
    raw = ["gpu-9: hello there", "gpu-9:   more text", "gpu-8: hello there", "gpu-9: "]
    lines = list(Envelopes().lines(enumerate(raw, 1)))
    assert [(line.text, line.host) for line in lines] == [
        ("gpu-9: hello there", None),
        ("  more text", "gpu-9"),
        ("gpu-8: hello there", None),
        ("", "gpu-9"),
    ]


@pytest.mark.parametrize("word", ["step", "layer1", "top5", "beta2", "fp16", "gpu0", "loss-1", "epoch-3"])
def test_known_words_are_never_hosts(word: str) -> None:
    """Names of quantities stay, however often they come."""
    envelopes = Envelopes()
    envelopes.learn([f"{word}: some text"] * 5)
    assert envelopes.take(1, f"{word}: some text")[0].host is None


def test_a_word_that_only_carries_values_is_no_host() -> None:
    """``name-1: 0.5`` twice is a measurement."""
    envelopes = Envelopes()
    envelopes.learn(["sensor-1: 0.5", "sensor-1: 0.6", "sensor-1: True"])
    assert envelopes.take(1, "sensor-1: 0.5")[0].text == "sensor-1: 0.5"


def test_learning_by_reading_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first lines no new word becomes a host; those known stay so."""
    monkeypatch.setattr("logmfu.envelopes.LEARN", 3)
    raw = ["gpu-9: one text"] * 3 + ["gpu-8: one text", "gpu-8: one text", "gpu-9: one text", "plain"]
    hosts = [line.host for line in Envelopes().lines(enumerate(raw, 1))]
    assert hosts == [None, "gpu-9", "gpu-9", None, None, "gpu-9", None]


def test_compose_and_replica_labels_need_two_lines_too() -> None:
    """``trainer-1  | `` names a host, ``a.job/0 `` nothing; both come off."""
    envelopes = Envelopes()
    envelopes.learn(["trainer-1  | one line", "a.job/0 one line"] * 2)
    assert envelopes.take(1, "trainer-1  | MSG")[0][::8] == ("MSG", "trainer-1")
    assert envelopes.take(1, "a.job/0 MSG")[0].text == "MSG"


def test_partial_lines_of_a_container_are_joined() -> None:
    """Pieces marked P wait for their F, per stream, and carry the first piece's number and time."""
    raw = [
        (1, "2023-11-15T12:00:00Z stdout P iteration 1"),
        (2, "2023-11-15T12:00:01Z stderr F noise"),
        (3, "2023-11-15T12:00:02Z stdout F 0/ 20 |"),
    ]
    noise, whole = Envelopes().lines(raw)
    assert (noise.text, noise.stream) == ("noise", "stderr")
    assert (whole.text, whole.number, whole.outer_time) == ("iteration 10/ 20 |", 1, NOON)


def test_docker_pieces_without_line_feed_are_joined() -> None:
    """Docker cuts at 16 KiB: the piece without a line feed goes on in the next entry."""
    raw = [(1, '{"log":"a","stream":"stdout"}'), (2, '{"log":"b\\r\\n","stream":"stdout"}')]
    assert [line.text for line in Envelopes().lines(raw)] == ["ab"]


def test_a_carriage_return_ends_an_unfinished_line() -> None:
    """A bar in pieces: what stood before the return is a line, what stood after it waits for its end."""
    raw = [
        (1, "2023-11-15T12:00:00Z stdout P 1/9"),
        (1, "2/"),
        (2, "2023-11-15T12:00:01Z stdout F 9"),
        (3, "2023-11-15T12:00:02Z stdout P torn"),
    ]
    assert [(line.text, line.number) for line in Envelopes().lines(raw)] == [
        ("1/9", 1),
        ("2/9", 1),
        ("torn", 3),
    ]


def test_an_endless_partial_line_is_given_out_in_bounded_pieces() -> None:
    """A log that never sends the last piece cannot fill the memory."""
    piece = "x" * 16384
    raw = [(n, f"2023-11-15T12:00:00Z stdout P {piece}") for n in range(1, 131)]
    sizes = [len(line.text) for line in Envelopes().lines(raw)]
    assert sizes == [LIMIT, LIMIT, 2 * 16384]


def test_text_after_a_carriage_return_inherits_the_prefix_of_its_line() -> None:
    """Progress bars and the metrics behind them share one rank and one arrival time."""
    text = "2023-11-15T12:00:00Z [rank2]: 1/9\r2/9\r{'loss': 2.5}"
    expected = [("1/9", 2, NOON), ("2/9", 2, NOON), ("{'loss': 2.5}", 2, NOON)]
    for lines in (
        Envelopes().take(1, text),
        list(Envelopes().lines((1, piece) for piece in text.split("\r"))),
    ):
        assert [(line.text, line.rank, line.outer_time) for line in lines] == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("[default0]:loss: 2.5 |[default3]: iteration 5", [("loss: 2.5 |", 0), (" iteration 5", 3)]),
        ("50%|##  | 5/10[default3]: iteration 5", [("50%|##  | 5/10", None), (" iteration 5", 3)]),
    ],
)
def test_glued_lines_are_taken_apart(raw: str, expected: list[tuple[str, int | None]]) -> None:
    """A launcher's prefix in the middle of a line begins another line."""
    assert [(line.text, line.local_rank) for line in Envelopes().take(1, raw)] == expected


def test_a_logger_prefix_in_the_middle_begins_a_line() -> None:
    """A bar without line feed gets the next message appended; the outer fields hold for both."""
    raw = "3: [default0]:5/10 [01:00<01:00][2023-11-15 12:00:00,500] [INFO] [a.py:1:f] step=5"
    first, second = Envelopes().take(4, raw)
    assert (first.text, first.time, first.number) == ("5/10 [01:00<01:00]", None, 4)
    assert (second.text, second.time, second.local_rank, second.host) == ("step=5", NOON + 0.5, 0, "task 3")


def test_the_year_comes_from_a_full_date_and_survives_new_year() -> None:
    """A stamp without a year is the one nearest to a full date, on either side of it."""
    envelopes = Envelopes(year=2019)
    envelopes.learn(["[2023-12-31 23:00:00] begin"])
    times = [envelopes.take(1, f"I{day} 00:00:00.000000 1 a.py:1] m")[0].time for day in ("1231", "0101")]
    assert times == [1_703_980_800.0, 1_704_067_200.0]


def test_the_year_comes_from_the_files_last_change() -> None:
    """No stamp is later than the file: December in a file changed in January is last year's."""
    envelopes = Envelopes(until=1_704_067_200.0 + 3600)
    assert envelopes.take(1, "I1231 00:00:00.000000 1 a.py:1] m")[0].time == 1_703_980_800.0


def test_without_any_year_there_is_no_time() -> None:
    """An unknown year is unknown; the message is read all the same."""
    line = strip("I1231 00:00:00.000000 1 a.py:1] m")
    assert (line.text, line.time) == ("m", None)


def test_lines_come_as_soon_as_they_are_read() -> None:
    """Nothing but a partial line waits for what follows."""

    def endless() -> Iterator[tuple[int, str]]:
        yield 1, "[default0]:first"
        raise AssertionError("read ahead")

    assert next(Envelopes().lines(endless())).text == "first"


PREFIXES = st.lists(
    st.sampled_from(
        [
            "[default1]:",
            "[rank2]: ",
            "12: ",
            "gpu-9: ",
            "[2023-11-15 12:00:00,500] [INFO] [a.py:1:f] ",
            "[2023-11-15 12:00:00.500000] ",
            "2023-11-15T12:00:00Z ",
            "Nov 15 12:00:00 ",
            "W1115 12:00:00.250000 42 a/run.py:79] ",
            "(pid=42) ",
            "\x1b[31m",
            "\r",
        ]
    ),
    max_size=5,
)
TEXTS = st.one_of(
    st.just("loss: 2.5"), st.text(alphabet="a0[]:{}(), \x1b\r", max_size=12), st.text(max_size=8)
)
RAW = st.builds(lambda parts, text, tail: "".join(parts) + text + "".join(tail), PREFIXES, TEXTS, PREFIXES)


@given(st.lists(RAW.map(lambda text: text.replace("\n", " ")), max_size=12))
def test_one_line_at_a_time_gives_what_the_stream_gives(raw: list[str]) -> None:
    """After learning, a line's result depends on that line only: selected lines may be read alone."""
    envelopes = Envelopes("x", year=2023)
    envelopes.learn(raw)
    alone = [line for number, text in enumerate(raw) for line in envelopes.take(number, text)]
    pieces = (
        (number, piece) for number, text in enumerate(raw) for piece in (text.rstrip("\r").split("\r"))
    )
    assert list(envelopes.lines(pieces)) == alone


@given(RAW, st.integers(0, 80), st.integers(0, 80), st.text(max_size=3))
def test_damage_never_raises_and_never_invents_text(raw: str, start: int, length: int, other: str) -> None:
    """Lost, doubled or foreign characters give some line whose text was in the raw line."""
    damaged = raw[:start] + other + raw[start + length :]
    for line in Envelopes(year=2023).take(1, damaged):
        assert line.text in damaged or "\x1b" in damaged or "[" in damaged


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    """Logs are hostile input."""
    Envelopes(year=2023).take(1, text)
    list(Envelopes().lines([(1, text), (1, text), (2, '{"log":' + text), (3, '{"log":["a"],"stream":[]}')]))

"""Every installed parser conforms; the kit finds what does not; parsers of other packages work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logmfu import registry
from logmfu.parsing import Block, Field, Pairs, Rule, RuleParser, Sample
from logmfu.records import Line, Record
from logmfu.testing import damaged, lines_of, problems

PARSERS, BROKEN = registry.load()
each_parser = pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)


def test_no_installed_parser_is_broken():
    """All entry points of the group can be loaded."""
    assert BROKEN == []


@each_parser
def test_parser_conforms(parser):
    """The conformance kit finds nothing."""
    assert problems(parser) == []


def sample_lines() -> list[str]:
    """All lines of all samples of all parsers: one parser's lines are noise for another."""
    rules = [rule for parser in PARSERS.values() if isinstance(parser, RuleParser) for rule in parser.rules]
    texts = {line for rule in rules for sample in rule.samples for line in sample.text.split("\n")}
    return sorted(texts)


@st.composite
def logs(draw: st.DrawFn) -> list[str]:
    """Sample lines, spliced with pieces of other lines and with any text."""
    line = st.sampled_from(sample_lines())
    out = []
    for _ in range(draw(st.integers(1, 12))):
        text = draw(line)
        at = draw(st.integers(0, len(text)))
        junk = draw(
            st.one_of(
                st.just(""), st.text(max_size=20), line, st.sampled_from([":", "|", "(", "{", "9" * 400])
            )
        )
        out.append(text[:at] + junk + text[at + draw(st.integers(0, 5)) :])
    return out


@given(logs())
@settings(max_examples=150, deadline=None)
def test_damaged_logs_never_raise_and_stay_in_order(log: list[str]):
    """Whatever a log holds, every parser reads on; a record's line is one it was given."""
    lines = lines_of(log)
    known = {id(line) for line in lines}
    for parser in PARSERS.values():
        records = list(parser.parse(lines))
        assert all(isinstance(record.values, dict) for record in records)
        assert {id(record.line) for record in records} <= known


@given(logs())
@settings(max_examples=50, deadline=None)
def test_a_log_read_twice_gives_the_same_records(log: list[str]):
    """A parser keeps nothing from one log to the next."""
    lines = lines_of(log)
    for parser in PARSERS.values():
        assert repr(list(parser.parse(lines))) == repr(list(parser.parse(lines)))


# --- the kit itself -----------------------------------------------------------------------------

STEP = Rule(
    name="step",
    kind="step",
    needle="it ",
    pattern=r"^it (?P<step>\d++)",
    pairs=Pairs(),
    fields={"step": Field("step", int), "loss": Field("loss")},
    samples=(Sample("it 7 | loss: 2.5 |", {"step": 7, "loss": 2.5}),),
)
GOOD = RuleParser(name="toy", title="A toy", rules=(STEP,))


def parser_of(*rules: Rule | Block) -> RuleParser:
    """A toy parser of these rules."""
    return replace(GOOD, rules=rules)


def test_a_sound_parser_has_no_problems():
    """The kit is content with a parser that is in order."""
    assert problems(GOOD) == []


def fact(name: str, needle: str, text: str) -> Rule:
    """A rule for a fact."""
    return Rule(
        name=f"rule_{name}",
        kind="fact",
        event=name,
        needle=needle,
        pattern=needle + r"(?P<n>\d++)",
        fields={"n": Field("value", int)},
        samples=(Sample(text),),
    )


BAD = {
    "no_sample": (parser_of(replace(STEP, samples=())), "rule 'step' has no sample"),
    "unread_sample": (
        parser_of(replace(STEP, samples=(Sample("it seven"),))),
        "the rule makes no record of it",
    ),
    "near_miss": (parser_of(replace(STEP, samples=(Sample("it seven"),))), "near miss of rule 'step'"),
    "needle": (parser_of(replace(STEP, samples=(Sample("IT 7"),))), "the needle 'it ' is not in it"),
    "two_rules": (parser_of(STEP, replace(STEP, name="again")), "rule 'again' reads it too"),
    "same_name": (parser_of(STEP, STEP), "2 rules are called 'step'"),
    "wrong_value": (
        parser_of(replace(STEP, samples=(Sample("it 7 | loss: 2.5 |", {"loss": 3.5}),))),
        "loss should be 3.5 and is 2.5",
    ),
    "missing_value": (
        parser_of(replace(STEP, samples=(Sample("it 7 | loss: 2.5 |", {"lr": 1.0}),))),
        "lr should be 1.0 and is missing",
    ),
    "uncovered_field": (
        parser_of(replace(STEP, fields={**STEP.fields, "lr": Field("lr")})),
        "rule 'step': no sample has the part 'lr'",
    ),
    "uncovered_group": (
        parser_of(replace(STEP, pattern=r"^it (?P<step>\d++)(?: of (?P<total_steps>\d++))?")),
        "rule 'step': no sample has the part 'total_steps'",
    ),
    "event_name": (
        parser_of(replace(STEP, kind="event", event="svae_end")),
        "event 'svae_end' is not in the schema",
    ),
    "fact_name": (
        parser_of(fact("worldSize", "ws=", "ws=8")),
        "fact 'worldSize' is spelt 'world_size' in the schema",
    ),
    "column_name": (
        parser_of(replace(STEP, fields={"step": Field("step", int), "loss": Field("step_time_ms")})),
        "step column 'step_time_ms' is spelt 'step_time_s' in the schema",
    ),
    "reserved_column": (
        parser_of(replace(STEP, fields={"step": Field("step", int), "loss": Field("attempt")})),
        "step column 'attempt' is filled by the tables",
    ),
    "title": (replace(GOOD, title=""), "title '' is not one line of text"),
    "name": (replace(GOOD, name="My Parser"), "name 'My Parser' is not a lower-case identifier"),
    "nothing": (parser_of(), "nothing to check"),
    "slow": (
        parser_of(
            replace(STEP, pattern=r"^it (?P<step>\d+)(?:\s|loss|\||\w|:|\.|[ -~])*?(?:(?:[ -~]+)+\x01)?$")
        ),
        "takes too long on damaged text",
    ),
}


@pytest.mark.parametrize(("parser", "expected"), BAD.values(), ids=BAD)
def test_kit_names_the_problem(parser: RuleParser, expected: str):
    """Each kind of fault is reported in words."""
    assert any(expected in problem for problem in problems(parser)), problems(parser)


@dataclass(frozen=True)
class Handmade:
    """A parser that is no set of rules: ``n NUMBER`` is a step."""

    lag: int = 0
    strict: bool = False
    name: str = "handmade"
    title: str = "By hand"

    def parse(self, lines: Iterable[Line]) -> Iterator[Record]:
        """Steps, held back by ``lag`` lines; ``strict`` trusts the number."""
        waiting: list[Record] = []
        for line in lines:
            word, _, number = line.text.partition(" ")
            if word == "n" and (number.isdecimal() or self.strict):
                waiting.append(Record("step", "n", {"step": int(number)}, line))
            while len(waiting) > self.lag:
                yield waiting.pop(0)
        yield from waiting


LOG = ("n 1", "n 2", "n 3")


def test_a_parser_without_rules_is_checked_on_a_log():
    """The protocol is all the kit needs, with lines to try."""
    assert problems(Handmade(), log=LOG) == []


def test_reading_ahead_is_found():
    """A record that comes out after the next line was read cannot be followed live."""
    assert problems(Handmade(lag=1), log=LOG) == ["records of 'n' come after the parser has read on"]


def test_raising_on_damage_is_found():
    """A parser that trusts its input is told which text it fell over."""
    found = problems(Handmade(strict=True), log=LOG)
    assert found
    assert all(problem.startswith("raises ValueError on damaged text") for problem in found)


def test_something_else_is_no_parser():
    """What is no parser at all is said, not raised."""
    assert problems(object()) == [
        "name None is not a lower-case identifier",
        "title None is not one line of text",
        "there is no parse()",
    ]


def test_damage_is_the_same_each_time():
    """The kit's damaged texts depend on the sample alone."""
    assert list(damaged("it 7 | loss: 2.5 |")) == list(damaged("it 7 | loss: 2.5 |"))


# --- parsers of other packages ------------------------------------------------------------------

PACKAGE = """
from logmfu.parsing import Field, Pairs, Rule, RuleParser, Sample

PARSER = RuleParser(
    name="acme",
    title="Acme trainer",
    rules=(
        Rule(
            name="step",
            kind="step",
            needle="acme step ",
            pattern=r"acme step (?P<step>\\d++)",
            pairs=Pairs(),
            fields={"step": Field("step", int), "sec": Field("step_time_s")},
            samples=(Sample("acme step 5 | sec: 0.5", {"step": 5, "step_time_s": 0.5}),),
        ),
    ),
)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with an installed third-party distribution: one parser that works, three that do not."""
    site = tmp_path / "site"
    info = site / "acme_logs-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "acme_logs.py").write_text(PACKAGE)
    (site / "acme_raises.py").write_text("raise RuntimeError('no licence')\n")
    (site / "acme_empty.py").write_text("PARSER = object()\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-logs\nVersion: 1.0\n")
    (info / "RECORD").write_text("")
    points = {
        "acme": "acme_logs:PARSER",
        "acme_other": "acme_logs:PARSER",
        "acme_raises": "acme_raises:PARSER",
        "acme_empty": "acme_empty:PARSER",
        "acme_gone": "acme_gone:PARSER",
    }
    lines = [f"[{registry.GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return site


def in_process(site: Path, code: str) -> dict[str, object]:
    """What a fresh interpreter with that folder on its path prints as JSON."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-c", dedent(code)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_parser_of_another_package_comes_in_by_its_entry_point(packages: Path):
    """It is loaded, conforms, and the built-in ones are still there."""
    found = in_process(
        packages,
        """
        import json
        from logmfu import registry
        from logmfu.testing import problems
        parsers, broken = registry.load()
        print(json.dumps({"parsers": sorted(parsers), "problems": problems(parsers["acme"])}))
        """,
    )
    assert found["problems"] == []
    assert set(found["parsers"]) == {*PARSERS, "acme"}


def test_broken_parsers_are_left_out_with_a_reason(packages: Path):
    """Import errors, things that are no parser and wrong names stop nothing, and each says why."""
    found = in_process(
        packages,
        """
        import json
        from logmfu import registry
        broken = {plugin.name: plugin.reason for plugin in registry.load()[1]}
        print(json.dumps(broken))
        """,
    )
    assert {name: reason for name, reason in found.items() if name.startswith("acme")} == {
        "acme_raises": "RuntimeError: no licence",
        "acme_empty": "TypeError: acme_empty:PARSER has no parse() or no title",
        "acme_gone": "ModuleNotFoundError: No module named 'acme_gone'",
        "acme_other": "TypeError: acme_logs:PARSER is called 'acme', its entry point 'acme_other'",
    }


def test_a_log_is_read_beside_broken_parsers(packages: Path, tmp_path: Path):
    """The log of the third-party format is detected and read, broken neighbours or not."""
    log = tmp_path / "acme.log"
    log.write_text("hello\nacme step 5 | sec: 0.5\nacme step 6 | sec: 0.7\n")
    found = in_process(
        packages,
        f"""
        import json
        import logmfu
        run = logmfu.read({str(log)!r})
        print(json.dumps({{"parser": run.parser, "steps": run.steps["step"].tolist()}}))
        """,
    )
    assert found == {"parser": "acme", "steps": [5, 6]}


def test_asking_for_a_broken_parser_says_what_is_wrong(packages: Path):
    """By name a broken parser is an error with its reason."""
    found = in_process(
        packages,
        """
        import json
        from logmfu import registry
        from logmfu.errors import PluginError
        try:
            registry.get("acme_raises")
        except PluginError as error:
            print(json.dumps({"what": error.what, "facts": error.facts}))
        """,
    )
    assert found == {"what": "the parser 'acme_raises' is broken", "facts": ["RuntimeError: no licence"]}

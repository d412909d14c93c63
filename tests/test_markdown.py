"""Text for tickets: real renderers read it, and no log can break out of it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import logmfu
from logmfu.errors import OptionError
from logmfu.render import escape, markdown
from logmfu.render.document import Cell, Column, table
from logmfu.render.quantities import (
    duration,
    gpu_hours,
    hours,
    moment,
    moment_utc,
    money,
    percent,
    significant,
    size,
)
from logmfu.render.timeline import what_changed

gfm = MarkdownIt("gfm-like", {"linkify": False})
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=80)


@cache
def text_of(name, dialect="github"):
    """The text of one of the reports, made once."""
    return markdown.render(reports.EVERY[name](), dialect=dialect)


def as_html(text):
    """What a CommonMark renderer with tables makes of the text."""
    return gfm.render(text)


@pytest.mark.parametrize("dialect", markdown.DIALECTS)
@pytest.mark.parametrize("name", reports.EVERY)
def test_every_report_fits_every_ticket(name, dialect):
    """No comment is longer than its system takes, no line longer than a screenful."""
    text = text_of(name, dialect)
    assert len(text) <= markdown.DIALECTS[dialect].limit
    assert max(map(len, text.splitlines())) < 2_000
    assert text.endswith("\n")


def test_unknown_dialect_is_refused():
    """The error names the dialects there are."""
    with pytest.raises(OptionError) as refusal:
        markdown.render(reports.healthy(), dialect="html")
    assert "github, jira, slack, plain" in str(refusal.value)


def test_sections_follow_the_practice_of_post_mortems():
    """Identity, impact, ledger, timeline, attempts, evidence, unknowns, blanks, provenance, in this order."""
    headings = re.findall(r"(?m)^### (.*)$", text_of("incident"))
    wanted = [
        "Summary", "Run", "Impact", "Where the time went", "How well the devices were used", "Timeline",
        "Attempts", "Stalls and slow stretches", "Changes", "Incidents", "What holds the pace down",
        "Profiler results", "Lines of the log", "What is not known, and what to switch on",
        "For people to fill in", "How this report was made",
    ]  # fmt: skip
    assert headings == wanted


def test_cause_and_actions_are_blanks():
    """What only people can know is marked, not invented."""
    text = text_of("incident")
    for prompt in ("Root cause", "Actions (what, who, by when)", "Lessons"):
        assert f"- [ ] **{prompt}:** \\_\\_\\_" in text


def test_impact_is_in_time_hours_and_money():
    """64 devices at 2.50: 30 min of hang are 32 GPU-hours and 80.00."""
    text = text_of("incident")
    assert "| hang | 30 min | 13.2 % | 32.0 | 80.00 |" in text


def test_timeline_has_both_clocks_and_the_line():
    """The log's own zone, UTC beside it, and where it stands."""
    text = text_of("incident")
    assert (
        "| 2026-03-04 06:00:41 | 2026-03-04 05:00:41 | From step 701 on: steps take 25 % longer | `run.log:1502` |"
        in text
    )


def test_an_attempt_ends_after_what_ended_it():
    """The failure line comes before the end of the attempt, though both have the same second."""
    text = text_of("no_steps")
    assert text.index("First sign of trouble: oom") < text.index("Attempt 1 ends: oom")


def test_github_tables_have_equal_rows_in_a_real_renderer():
    """Every row of every table has as many cells as its head, hostile texts or not."""
    for name in reports.EVERY:
        html = as_html(text_of(name))
        for body in re.findall(r"<table>(.*?)</table>", html, re.DOTALL):
            rows = [
                len(re.findall(r"<t[hd][ >]", row))
                for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
            ]
            assert len(set(rows)) == 1


def test_hostile_texts_stay_text_in_github():
    """No element, link, image or emphasis comes out of the log's text."""
    html = as_html(text_of("hostile"))
    assert not re.search(r"<(script|img|a|em|del|i|b)[ >]", html)
    assert "@admin" not in re.sub(r"<code.*?</code>", "", html, flags=re.DOTALL)


def test_hostile_texts_close_no_block():
    """Fences and Jira's noformat hold whatever the log says."""
    jira = text_of("hostile", "jira")
    assert jira.count("{noformat}") == 2
    slack = text_of("hostile", "slack")
    assert slack.count("```") % 2 == 0
    assert "<!channel>" not in slack


def test_jira_tables_in_a_real_renderer():
    """Pandoc reads the Jira markup: tables whole, nothing of the log alive."""
    pypandoc = pytest.importorskip("pypandoc")
    for name in ("incident", "hostile"):
        html = pypandoc.convert_text(text_of(name, "jira"), "html", format="jira")
        assert not re.search(r"<(img|a|em|strong>[^<]*owned)[ >]", html)
        for body in re.findall(r"<table>(.*?)</table>", html, re.DOTALL):
            rows = [
                len(re.findall(r"<t[hd]>", row)) for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
            ]
            assert len(set(rows)) == 1


def test_slack_turns_wide_tables_into_lists():
    """Slack has no tables: narrow ones are aligned text, wide ones a line per row."""
    text = text_of("incident", "slack")
    assert "hang              30 min   13.2 %       32.0   80.00" in text
    assert "• hang; After step: 1,000; Start: 2026-03-04 06:27:56; Length: 30 min;" in text


def test_too_many_rows_are_left_out_and_said_so():
    """3,000 stalls become the longest ones and a sentence about the rest."""
    text = text_of("many_stalls")
    assert "2,970 shorter ones left out, 4 h 6 min together." in text


def test_a_report_too_long_for_a_comment_is_cut_between_blocks(monkeypatch):
    """The text ends with a sentence that says so, with no fence left open."""
    short = markdown.DIALECTS["github"].__class__
    style = markdown.DIALECTS["github"]
    small = short(3_000, style.heading, style.bullet, style.blank, style.block, style.table)
    monkeypatch.setitem(markdown.DIALECTS, "github", small)
    text = markdown.render(reports.hostile())
    assert len(text) <= 3_000
    assert text.endswith("The rest did not fit into one comment; see the attached report.\n")
    assert text.count("```") % 2 == 0


def test_secrets_are_masked_without_being_asked():
    """A token in a failure line does not reach the ticket."""
    base = reports.incident()
    leak = replace(base.incidents[0], text="HF_TOKEN=hf_" + "a1B2" * 8)
    assert "a1B2a1B2" not in markdown.render(replace(base, incidents=(leak,)))


@given(ANY_TEXT)
def test_any_text_in_a_github_cell_is_one_cell_of_plain_text(text):
    """A table cell shows the text it was given and makes no element of it."""
    cell = escape.markdown(text)
    html = as_html(f"| a | b |\n| --- | --- |\n| {cell} | x |\n")
    assert html.count("<td>") == 2
    assert not re.search(r"<(?!/?(?:table|thead|tbody|tr|th|td)\b)\w", html)


@given(ANY_TEXT)
def test_any_text_in_a_github_code_cell_is_one_cell(text):
    """The same in a fixed-width cell."""
    html = as_html(f"| a | b |\n| --- | --- |\n| {escape.code(text)} | x |\n")
    assert html.count("<td>") == 2
    assert not re.search(r"<(?!/?(?:table|thead|tbody|tr|th|td|code)\b)\w", html)


@given(ANY_TEXT)
def test_any_text_stays_inside_a_fence(text):
    """A block of cited lines is one code block."""
    line = escape.code_line(text)
    mark = escape.fence([line])
    html = as_html(f"{mark}text\n{line}\n{mark}\n\nafter\n")
    assert html.count("<pre>") == 1
    assert html.endswith("<p>after</p>\n")


@given(ANY_TEXT)
def test_any_text_is_one_harmless_line_in_a_terminal(text):
    """No control character, no direction mark: nothing the terminal would obey."""
    shown = escape.terminal(text)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", shown)


@given(ANY_TEXT, st.sampled_from(["github", "jira", "slack"]))
def test_mentions_never_survive(text, dialect):
    """No sign that starts a mention, a reference or a command stands right before a word."""
    prose = escape.markdown(text, dialect)
    assert not re.search(r"(?<!\\)[@#!][A-Za-z0-9_]", prose)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        (" =1", "' =1"),
        ("-3.5e-4", "-3.5e-4"),
        ("+inf", "+inf"),
        ("iteration 5", "iteration 5"),
        ("", ""),
    ],
)
def test_spreadsheet_cells_do_not_calculate(text, cell):
    """A leading sign of a formula is quoted; a number is not touched."""
    assert escape.csv_cell(text) == cell


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "‹ESC›[31mred"),
        ("a\r\nb", "a‹CR›‹LF›b"),
        ("a\tb", "a b"),
        ("\u202egnp.exe", "‹U+202E›gnp.exe"),
        ("\x9b5m", "‹U+009B›5m"),
    ],
)
def test_invisible_characters_are_spelled_out(text, shown):
    """Nothing is hidden from the reader: escape sequences and direction marks are shown."""
    assert escape.terminal(text) == shown


def test_a_megabyte_line_is_shortened_and_counted():
    """The reader learns how long the line was."""
    assert escape.terminal("x" * 1_048_576, limit=10) == "xxxxxxxxxx … (1,048,576 characters)"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0004, "<0.001 s"), (0.4123, "0.412 s"), (41.23, "41.2 s"), (59.96, "1 min"), (725, "12 min 5 s"), (3599.6, "1 h"),
        (7980, "2 h 13 min"), (86_400, "1 d"), (273_600, "3 d 4 h"), (-5, "-5.00 s"), (None, "unknown"),
    ],
)  # fmt: skip
def test_durations_read_like_speech(seconds, words):
    """The two largest units, rounded."""
    assert duration(seconds) == words


@given(st.floats(0, 1e8))
def test_durations_never_show_sixty_of_a_unit(seconds):
    """``1 min 60 s`` and ``24 h`` do not exist."""
    assert not re.search(r"(?<![\d.])(60 s|60 min|24 h|60\.0 s)\b", duration(seconds))


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.455, "45.5 %"),
        (0.04546, "4.55 %"),
        (1.0, "100 %"),
        (0.99996, "99.99 %"),
        (0.99961, "99.96 %"),
        (0.000334, "0.03 %"),
        (0.00001, "<0.01 %"),
        (0.9999999999, "100 %"),
        (0.0, "0 %"),
        (None, "unknown"),
    ],
)
def test_percent_has_three_significant_digits(share, words):
    """And never rounds something less than the whole up to it."""
    assert percent(share) == words


def test_files_of_one_name_are_told_apart_by_their_folder():
    """Two rank0.log show the part of the path they do not share."""
    text = text_of("bare")
    assert "`a/rank0.log:9`" in text
    assert "b/rank0.log: cut off in the last line" in text


def test_unknown_world_size_gives_no_hours():
    """Instead of GPU-hours stands the flag that brings them."""
    text = text_of("bare")
    assert "GPU-hours are not given; --world-size N adds it." in text
    assert "50 min 56 s of step time, 600 printed steps" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("steps take 25 % longer", "From step 701 on: steps take 25 % longer"),
        ("from iteration 701 on steps take longer", "From iteration 701 on steps take longer"),
    ],
)
def test_a_change_names_its_step_once(text, shown):
    """Where the words say the step, it is not said again."""
    assert what_changed(replace(reports.incident().changes[0], text=text)) == shown


def test_unprinted_zone_is_said():
    """Times without a zone are those of the log's own clock, and there is no UTC column."""
    text = markdown.render(replace(reports.healthy(), utc_offset=None))
    assert "| Log clock (zone not printed) | What |" in text
    assert "The log prints no time zone; times are those of its own clock." in text


def test_other_quantities():
    """Thousands separated, binary sizes, both clocks."""
    assert significant(1_234_567) == "1,230,000"
    assert significant(float("nan")) == "not a number"
    assert significant(1.5e-7) == "1.50e-07"
    assert hours(1240.4) == "1,240"
    assert (hours(None), money(None), moment(None), gpu_hours(2.71)) == (*["unknown"] * 3, "2.71 GPU-h")
    assert money(1234.6) == "1,235"
    assert size(1_572_864) == "1.50 MiB"
    assert moment(0.0) == "1970-01-01 00:00:00"
    assert moment_utc(3600.0, 3600) == "1970-01-01 00:00:00"


def test_empty_columns_go():
    """A table does not show a column in which nothing stands."""
    made = table("t", ("a", Column("b", number=True), "c"), [["1", Cell(""), "2"]])
    assert [column.title for column in made.columns] == ["a", "c"]


def test_every_entry_of_the_timeline_cites_a_line():
    """Starts and what has no line of its own cite the step line they were seen at."""
    log = Path(__file__).parents[1] / "fixtures" / "megatron" / "0.12-64gpu-hang-restart.log"
    text = logmfu.analyze(logmfu.read(log)).to_markdown()
    entries = text.split("Timeline\n\n")[1].split("\n\n")[0].splitlines()[2:]
    assert len(entries) > 15
    assert [entry for entry in entries if ".log:" not in entry.split(" | ")[-1]] == []
    assert "starts, first printed step 10 | `0.12-64gpu-hang-restart.log:42` |" in entries[0]

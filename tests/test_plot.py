"""The picture: what it shows, and that nothing a log holds can break it."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import reports
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from logmfu.errors import OptionError
from logmfu.render import plot
from logmfu.render.reduction import band, begins, kept_rows, runs


def texts(figure):
    """Every text in the picture."""
    legend = [text.get_text() for box in figure.legends for text in box.get_texts()]
    inside = [text.get_text() for axes in figure.axes for text in axes.texts]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    labels = [label for axes in figure.axes for label in (axes.get_xlabel(), axes.get_ylabel())]
    return [*(text.get_text() for text in figure.texts), *legend, *inside, *titles, *labels]


@pytest.mark.parametrize("name", reports.EVERY)
@pytest.mark.parametrize("axis", ["auto", "time", "step"])
def test_every_shape_of_report_becomes_a_picture(name, axis):
    """Zero steps, one step, many stalls, hostile texts: drawn without a warning."""
    assert plot.figure(reports.EVERY[name](), axis=axis).axes


def test_run_name_denominator_and_median_stand_in_the_picture():
    """A picture that was cut out of its ticket still says what it shows."""
    shown = " ".join(texts(plot.figure(reports.incident())))
    assert "llama-7b-bf16" in shown
    assert "989.4 TFLOP/s per device (H100 SXM5, bf16 dense)" in shown
    assert "median\n45.5 %" in shown


def test_reason_for_missing_mfu_stands_in_the_picture():
    """Without a peak, tokens per second are drawn and the reason is given."""
    shown = texts(plot.figure(reports.withheld()))
    assert "tokens per second" in shown
    assert "MFU not given: the log names no accelerator; give --gpu NAME or --peak-tflops X" in shown


@pytest.mark.parametrize(
    ("columns", "label"),
    [
        (("mfu",), "MFU"),
        (("tflops_per_gpu", "tokens_per_s"), "TFLOP/s per device"),
        (("tokens_per_s", "step_time_s"), "tokens per second"),
        (("step_time_s",), "step time (s)"),
    ],
)
def test_best_known_quantity_is_drawn(columns, label):
    """MFU, else TFLOP/s, else tokens per second, else step time."""
    whole = reports.withheld()
    others = {"mfu", "tokens_per_s", "step_time_s"} - set(columns)
    given_columns = dict.fromkeys(others, np.nan) | dict.fromkeys(columns, 0.4)
    assert label in texts(plot.figure(replace(whole, series=whole.series.assign(**given_columns))))


def test_legend_names_every_class_with_its_time_and_share():
    """The legend serves the shading and the ledger's bar."""
    shown = texts(plot.figure(reports.incident()))
    assert "hang  30 min (13.2 %)" in shown
    assert {"restart", "steps done again later, or lost"} <= set(shown)


def test_axis_by_step_and_by_time():
    """The same run against its steps and against the log's own clock."""
    assert "step" in texts(plot.figure(reports.healthy(), axis="step"))
    assert "wall clock of the log (UTC+01:00), from 2026-03-04 05:00:00" in texts(
        plot.figure(reports.healthy())
    )
    with pytest.raises(OptionError):
        plot.figure(reports.healthy(), axis="moon")


def test_reconstructed_clock_is_labelled_so():
    """Where there are no time stamps, the axis does not pretend there were."""
    report = replace(reports.healthy(), clock="reconstructed", start=None, end=None)
    assert "minutes of step time" in texts(plot.figure(report))


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_same_report_gives_the_same_bytes(tmp_path, kind):
    """No date and no random identifier in the file."""
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    plot.save(reports.incident(), first)
    plot.save(reports.incident(), second)
    assert first.read_bytes() == second.read_bytes()


def test_png_is_sharp_and_fits_a_ticket():
    """Twice 960 x 540 pixels, well below a megabyte even with 3,000 stalls."""
    picture = plot.png(reports.many_stalls())
    assert Image.open(BytesIO(picture)).size == (1920, 1080)
    assert len(picture) < 1_000_000


def test_unknown_picture_format_is_refused(tmp_path):
    """The error names the formats there are."""
    with pytest.raises(OptionError, match="jpg"):
        plot.save(reports.healthy(), tmp_path / "a.jpg")


def test_user_settings_of_matplotlib_stay_out_and_untouched():
    """A picture made under other settings is the same, and the settings survive."""
    import matplotlib as mpl

    plain = plot.png(reports.one_step())
    with mpl.rc_context({"lines.linewidth": 9.0, "font.size": 30.0}):
        assert plot.png(reports.one_step()) == plain
        assert mpl.rcParams["font.size"] == 30.0


def test_step_times_over_decades_are_on_a_logarithmic_axis():
    """A compiling first step of 80 s among steps of 5 s leaves both readable."""
    assert plot.figure(reports.bare()).axes[0].get_yscale() == "log"
    assert plot.figure(reports.healthy()).axes[0].get_yscale() == "linear"


def test_steps_without_any_number_are_said_so():
    """A picture without a curve says why it has none."""
    shown = texts(plot.figure(reports.unclocked()))
    assert "the steps carry no number that can be drawn" in shown
    assert "MFU not given: the log has no times" in shown


def test_labels_of_many_attempts_do_not_overlap():
    """Sixty restarts are lines without labels; two labels that would touch are one."""
    figure = plot.figure(reports.many_attempts())
    assert not [text for text in texts(figure) if text.startswith("attempt ")]
    assert "60 attempts" in " ".join(texts(figure))


def test_million_steps_keep_both_extremes():
    """The lowest and the highest of a million steps reach the drawing."""
    rows = reports.million().series
    drawn = band(rows.elapsed_s.to_numpy(), rows.mfu.to_numpy(), 1200)
    assert len(drawn.x) <= 1200
    assert drawn.low.min() == 0.031
    assert drawn.high.max() == 0.733


numbers = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=300)


@given(numbers, st.integers(1, 50))
def test_band_keeps_the_extremes_of_any_series(values, buckets):
    """Whatever the series and the number of buckets, its minimum and maximum are drawn."""
    y = np.array(values)
    drawn = band(np.arange(len(y), dtype=float), y, buckets)
    known = y[~np.isnan(y)]
    assert len(drawn.x) <= buckets
    assert (len(known) == 0) == (len(drawn.x) == 0)
    if len(known):
        assert (drawn.low.min(), drawn.high.max()) == (known.min(), known.max())


@given(numbers, st.integers(6, 60), st.integers(1, 3))
def test_kept_rows_hold_extremes_and_borders_of_any_series(values, limit, attempts):
    """Rows chosen for the page hold each column's extremes and both ends of each attempt."""
    import pandas as pd

    rows = len(values)
    attempt = np.sort(np.arange(rows) % attempts)
    table = pd.DataFrame({"y": values, "attempt": attempt, "lost": False})
    kept = kept_rows(table, ["y"], limit)
    assert list(kept) == sorted(set(kept.tolist()))
    assert {part.start for part in runs(attempt)} | {part.stop - 1 for part in runs(attempt)} <= set(
        kept.tolist()
    )
    known = table.y.dropna()
    if len(known):
        assert {known.min(), known.max()} <= set(table.y.iloc[kept].tolist())


def test_line_stops_at_a_pause_and_goes_on_with_the_step_after_it():
    """Steps of 5 s; a pause of 40 s before the third: its own step began 5 s before its line."""
    rows = reports.series(4).assign(elapsed_s=[10.0, 15.0, 60.0, 65.0], step_time_s=5.0)
    assert begins(rows) == {0: 5.0, 2: 55.0}


def test_pauses_below_the_resolution_of_time_stamps_are_none():
    """A second more than the steps took may be rounding."""
    rows = reports.series(3).assign(elapsed_s=[10.0, 15.0, 21.0], step_time_s=5.0)
    assert begins(rows) == {0: 5.0}


def test_attempts_begin_anew_and_never_before_the_line_before():
    """The first step of an attempt reaches back by its own time, at most to the line before it."""
    rows = reports.series(3).assign(
        elapsed_s=[10.0, 15.0, 300.0], step_time_s=[5.0, 5.0, 600.0], attempt=[1, 1, 2]
    )
    assert begins(rows) == {0: 5.0, 2: 15.0}
    assert begins(rows.assign(step_time_s=np.nan)) == {0: 10.0, 2: 300.0}
    assert begins(rows.assign(elapsed_s=np.nan)) == {}


def test_character_the_font_lacks_is_a_question_mark():
    """A run named in a script the font does not have still gets its picture, without a warning."""
    assert "??-7b" in texts(plot.figure(replace(reports.one_step(), name="\u6a21\u578b-7b")))


def test_dollar_signs_are_text_and_not_mathematics():
    """A name with two dollar signs is not typeset."""
    picture = plot.figure(replace(reports.one_step(), name="$\\undefined{$"))
    assert "$\\undefined{$" in texts(picture)
    picture.savefig(BytesIO(), format="png")

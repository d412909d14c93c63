"""The page as text: complete, self-contained, small, escaped."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import reports

from logmfu.render import html
from logmfu.render.chart_data import _pauses, as_script, chart_data
from logmfu.render.histogram import histograms

VOID = {"meta", "link", "img", "br", "input"}


class Outline(HTMLParser):
    """Elements, attributes and unbalanced tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.unbalanced = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """What the parser calls."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """What the parser calls."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """What the parser calls."""
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def all(self, name):
        """Attributes of every element of a kind."""
        return [attrs for tag, attrs in self.elements if tag == name]


@cache
def page_of(name):
    """The page of one of the reports, made once."""
    return html.render(reports.EVERY[name]())


def data_of(page):
    """The charts' data in the page."""
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    )


@pytest.mark.parametrize("name", reports.EVERY)
def test_every_report_is_one_balanced_page(name):
    """Every element is closed where it should be, and there is one main heading."""
    outline = Outline(page_of(name))
    assert (outline.open, outline.unbalanced) == ([], [])
    assert len(outline.all("h1")) == 1


@pytest.mark.parametrize("name", reports.EVERY)
def test_nothing_is_fetched(name):
    """No address leads out of the file: links are anchors, pictures are inside."""
    outline = Outline(page_of(name))
    addresses = [
        attrs[key] for _, attrs in outline.elements for key in ("src", "href", "action") if key in attrs
    ]
    assert all(address.startswith(("#", "data:")) for address in addresses)


def test_policy_allows_the_page_s_own_scripts_and_styles_only():
    """Each script and style is allowed by its hash; nothing else is."""
    page = page_of("incident")
    policy = Outline(page).all("meta")[1]["content"]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        for text in re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL):
            assert f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    assert " style=" not in page


def test_hostile_texts_make_no_element():
    """The page of a hostile log has the elements of the page of a friendly one, and no handlers."""
    outline = Outline(page_of("hostile"))
    assert len(outline.all("img")) == 1
    assert not [attrs for _, attrs in outline.elements for key in attrs if key.startswith("on")]
    assert not outline.all("i")


def test_data_cannot_end_its_element():
    """Angle brackets and ampersands inside the data are escaped."""
    text = as_script({"a": "</script><!--&"})
    assert not re.search("[<>&]", text)
    assert json.loads(text) == {"a": "</script><!--&"}


def test_cited_lines_are_linked_to_their_excerpts():
    """Every link leads to something on the page, and cited lines show what stood around them."""
    around = {(reports.LOG, 2104): [f"around {n}" for n in range(2101, 2108)]}
    page = html.render(reports.incident(), around)
    outline = Outline(page)
    anchors = {attrs["href"][1:] for attrs in outline.all("a")}
    identifiers = {attrs["id"] for _, attrs in outline.elements if "id" in attrs}
    assert anchors <= identifiers
    assert '<mark><span class="no">2104</span> around 2104</mark>' in page
    assert '<span class="no">2107</span> around 2107' in page


def test_anchors_are_unique():
    """No two elements share an identifier."""
    identifiers = [attrs["id"] for _, attrs in Outline(page_of("many_stalls")).elements if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))


def test_million_steps_fit_a_ticket_with_their_extremes():
    """The page stays under 1.5 MB; lowest and highest step are in it, and it says what is left out."""
    page = html.render(reports.million())
    data = data_of(page)
    assert len(page) < 1_500_000
    assert len(data["step"]) <= html.POINTS * 1.05
    assert {3.1, 73.3} <= set(data["panels"][0]["y"])
    assert "of 1,000,000 steps are drawn" in page


def test_more_points_on_request():
    """Who wants a larger page gets one."""
    assert len(data_of(html.render(reports.healthy(2000), points=500))["step"]) < 700
    assert len(data_of(html.render(reports.healthy(2000)))["step"]) == 2000


def test_integers_travel_as_differences():
    """Steps 951, 952 after 1000 come back by summing up."""
    data = chart_data(reports.incident(), points=10_000, names={})
    assert data["step"][:3] == [1, 1, 1]
    assert sum(data["step"]) == 1950
    assert sum(data["attempt"]) == 2


def test_report_without_a_step_has_its_page():
    """The ledger and the failure line are there, a chart is not."""
    page = page_of("no_steps")
    assert "CUDA out of memory" in page
    assert 'id="data"' not in page


def test_step_times_over_decades_are_drawn_on_a_logarithmic_axis():
    """A first step of 80 s does not squash the others."""
    assert [panel["log"] for panel in data_of(page_of("bare"))["panels"]] == [True]
    assert [panel["log"] for panel in data_of(page_of("healthy"))["panels"]] == [
        False,
        False,
        False,
    ]


def test_missing_mfu_is_said_with_its_reason():
    """At the head and in the text."""
    page = page_of("withheld")
    assert "<dd>not given</dd>" in page
    assert "give --gpu NAME or --peak-tflops X" in page


def test_same_report_gives_the_same_page():
    """No date, no random identifier."""
    assert html.render(reports.incident()) == page_of("incident")


def test_pictures_have_a_text_instead():
    """The static picture and every drawing carry words for who cannot see them."""
    outline = Outline(page_of("incident"))
    assert outline.all("img")[0]["alt"].startswith("64 devices, 3 h 48 min")
    assert all("aria-label" in attrs or "aria-hidden" in attrs for attrs in outline.all("svg"))


def test_histogram_of_step_times_before_and_after_a_change():
    """700 steps of 5 s before; 1,300 from then on, the most of them in the same bins or at 6.25 s."""
    (found,) = histograms(reports.incident())
    assert (found.before, found.after) == (700, 1300)
    tallest = {
        side: max(bar.height for bar in found.bars if bar.side == side) for side in ("before", "after")
    }
    assert max(tallest.values()) == 150.0


def test_steps_of_one_length_still_have_a_histogram():
    """Without any spread the scale reaches a little to both sides."""
    base = reports.incident()
    flat = replace(base, series=base.series.assign(step_time_s=5.0))
    (found,) = histograms(flat)
    assert (found.low_s, found.high_s) == (4.75, 5.25)


def test_change_without_steps_on_one_side_has_no_histogram():
    """There is nothing to compare."""
    base = reports.incident()
    assert not list(histograms(replace(base, changes=(replace(base.changes[0], step=5000),))))


def test_index_links_every_run():
    """Names, figures and addresses; an address is quoted and stays relative."""
    page = html.render_index(
        [(reports.healthy(), "a b.report.html"), (reports.hostile(), "javascript:alert(1)")]
    )
    outline = Outline(page)
    assert [attrs["href"] for attrs in outline.all("a")] == [
        "#main",
        "./a%20b.report.html",
        "./javascript%3Aalert%281%29",
    ]
    assert (outline.open, outline.unbalanced) == ([], [])
    assert "Training runs (2)" in page


def test_own_scripts_cannot_end_their_element():
    """The library and our scripts hold no closing tag."""
    for name in ("uplot.js", "charts.js", "page.js"):
        assert "</script" not in html._asset(name).lower()


def test_licence_of_the_plotting_library_travels_along():
    """UPlot is MIT: its text is part of the package."""
    assert "MIT License" in html._asset("uplot.LICENSE.txt")


@pytest.mark.parametrize("timed", [True, False], ids=["clock", "steps"])
def test_a_chart_of_very_many_pauses_shows_all_kinds_everywhere(timed: bool):
    """Four thousand saves of 20 s and evaluations of 40 s in turn: each tenth of the run has both, and the longest is there."""
    stalls = [
        SimpleNamespace(
            kind=("checkpoint", "evaluation")[at % 2],
            seconds=900.0 if at == 777 else 20.0 + 20.0 * (at % 2),
            elapsed_s=60.0 * at if timed else None,
            step=at,
        )
        for at in range(8000)
    ]
    drawn = _pauses(stalls)
    assert len(drawn) <= 5000
    assert drawn[0].seconds == 900.0
    for tenth in range(10):
        part = {stall.kind for stall in drawn if 800 * tenth <= stall.step < 800 * (tenth + 1)}
        assert part == {"checkpoint", "evaluation"}

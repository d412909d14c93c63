"""The report as one HTML page: no network, readable without scripts, on a phone and on paper.

Everything of the log is escaped by the template engine; scripts and styles are allowed by their
hash only, so that a hole in the escaping would still run nothing.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from logmfu import __version__
from logmfu.excerpts import Excerpts, first_line
from logmfu.masking import mask
from logmfu.redaction import mask_secrets
from logmfu.render import plot
from logmfu.render.chart_data import as_script, chart_data
from logmfu.render.document import Blank, Block, Bullets, Citations, Section, Table, Text
from logmfu.render.escape import shorten, visible
from logmfu.render.file_names import short_names
from logmfu.render.histogram import HEIGHT, WIDTH, histograms
from logmfu.render.metric import metric
from logmfu.render.palette import OTHER, PAINTS, paint
from logmfu.render.postmortem import headline, sections, title
from logmfu.render.quantities import count, duration, hours, percent, plural, significant, words
from logmfu.report import Evidence, Report

POINTS = 16_000
"""Steps that are drawn; beyond them only every stretch's extremes, and the page stays under about 1.5 MB."""
_ROWS = 300
"""Rows of a table."""
_PICTURE_DPI = 120
_TEXT_LIMIT = 2_000
_BLOCKS: dict[type, str] = {
    Text: "text",
    Bullets: "bullets",
    Table: "table",
    Citations: "citations",
    Blank: "blank",
}
_HATCHES = {
    "": "",
    "////": "rising",
    "//": "rising",
    "\\\\\\\\": "falling",
    "xxxx": "crossed",
    "....": "dotted",
}


def render(report: Report, excerpts: Excerpts | None = None, *, points: int = POINTS) -> str:
    """The page. ``excerpts`` are the lines around cited ones, from :func:`logmfu.excerpts.excerpts`."""
    masked = mask_secrets(report)
    names = dict(short_names(masked))
    parts = sections(masked, rows=_ROWS)
    data = chart_data(masked, points=points, names=names)
    shown = metric(masked)
    return _page(
        "report.html",
        with_charts=data is not None,
        title=title(masked),
        headline=headline(masked),
        figures=_figures(masked),
        sections=parts,
        anchors=_anchors(parts),
        names=names,
        excerpts=_numbered(excerpts or {}),
        picture=_data_uri(plot.png(masked, dpi=_PICTURE_DPI)),
        caption=shown.caption if shown else "",
        data=None if data is None else Markup(as_script(data)),  # noqa: S704  escaped for its element
        drawn=None if data is None else len(data["step"]),
        total=len(masked.series),
        ledger=masked.ledger,
        histograms=list(histograms(masked)),
        paper=(WIDTH, HEIGHT),
    )


def render_index(reports: Sequence[tuple[Report, str]]) -> str:
    """One page over several runs; each report comes with the relative address of its own page."""
    rows = [(mask_secrets(report), quote(address)) for report, address in reports]
    return _page("index.html", with_charts=False, title=f"Training runs ({len(rows)})", rows=rows)


def _page(template: str, *, with_charts: bool, **values: Any) -> str:
    styles = [_asset("page.css"), _kind_styles()]
    scripts = [_asset("page.js")]
    if with_charts:
        styles.append(_asset("uplot.css"))
        scripts = [_asset("uplot.js"), _asset("charts.js"), *scripts]
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hashes(styles)}; script-src {_hashes(scripts)}; "
        "base-uri 'none'; form-action 'none'"
    )
    assets = {"styles": [Markup(each) for each in styles], "scripts": [Markup(each) for each in scripts]}  # noqa: S704  our own files
    return (
        _environment().get_template(template).render(**values, **assets, policy=policy, version=__version__)
    )


@cache
def _environment() -> Environment:
    loader = DictLoader(
        {name: _asset(name) for name in ("layout.html", "blocks.html", "report.html", "index.html")}
    )
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "show": _show,
        "count": count,
        "duration": duration,
        "hours": hours,
        "percent": percent,
        "plural": plural,
        "significant": significant,
        "words": words,
        "sortable": lambda table: any(cell.sort is not None for row in table.rows for cell in row),
        "kind_of": lambda block: _BLOCKS[type(block)],
        "hatch": lambda kind: _HATCHES.get(paint(kind).hatch, ""),
        "css": lambda kind: kind if kind in PAINTS else "other",
    }
    return environment


@cache
def _asset(name: str) -> str:
    return files("logmfu.render").joinpath("html", name).read_text(encoding="utf-8")


def _hashes(texts: Sequence[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)


def _kind_styles() -> str:
    """One rule per class of the ledger, by day and by night."""
    paints = PAINTS | {"other": OTHER}
    day = "".join(f".k-{kind}{{fill:{look.fill}}}" for kind, look in paints.items())
    night = "".join(f".k-{kind}{{fill:{look.night}}}" for kind, look in paints.items() if look.night)
    return f"{day}@media screen and (prefers-color-scheme:dark){{{night}}}"


def _data_uri(picture: bytes) -> str:
    return f"data:image/png;base64,{b64encode(picture).decode()}"


def _show(text: object, limit: int = _TEXT_LIMIT) -> str:
    """A text with its control and direction characters spelled out; the template escapes it."""
    return visible(shorten(str(text), limit))


def _figures(report: Report) -> list[tuple[str, str]]:
    """The few numbers at the head of the page."""
    spread = report.mfu.spread
    figures = [
        ("median MFU", percent(spread.median) if spread else "not given"),
        (
            "MFU over the wall clock",
            percent(report.mfu.effective) if report.mfu.effective is not None else "",
        ),
        ("productive time", percent(report.goodput) if report.goodput is not None else ""),
        ("wall clock", duration(report.wall_clock_s) if report.wall_clock_s is not None else ""),
        ("GPU-hours", _gpu_hours(report)),
        ("attempts", count(len(report.attempts)) if report.attempts else ""),
    ]
    return [(name, text) for name, text in figures if text]


def _gpu_hours(report: Report) -> str:
    """The ledger's total."""
    known = [entry.gpu_hours for entry in report.ledger if entry.gpu_hours is not None]
    return hours(sum(known)) if known else ""


def _anchors(parts: Sequence[Section]) -> dict[tuple[str, int], str]:
    """Identifiers of the cited lines that have an excerpt on the page."""
    cited = [line for part in parts for block in part.blocks for line in _citations(block)]
    return {(line.path, line.line): f"line-{n}" for n, line in enumerate(cited, start=1)}


def _citations(block: Block) -> Sequence[Evidence]:
    return block.evidence if isinstance(block, Citations) else ()


def _numbered(
    excerpts: Mapping[tuple[str, int], Sequence[str]],
) -> dict[tuple[str, int], list[tuple[int, str]]]:
    return {
        (path, line): list(enumerate((mask(text) for text in texts), start=first_line(line)))
        for (path, line), texts in excerpts.items()
    }

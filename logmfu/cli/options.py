"""Options that several commands share, and how their texts are understood."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from logmfu.errors import OptionError


class Format(StrEnum):
    """How a table or a result is written."""

    json = "json"
    csv = "csv"
    table = "table"


def analysis_options(
    parser: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the log with this parser.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="The accelerator, as in `logmfu peaks`.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="NAME", help="bf16, fp16, fp8, ...: of the matrix products.")
    ] = None,
    peak_tflops: Annotated[
        float | None, typer.Option(metavar="X", min=0.001, help="Dense TFLOP/s of one device.")
    ] = None,
    world_size: Annotated[int | None, typer.Option(metavar="N", min=1, help="Number of devices.")] = None,
    seq_len: Annotated[int | None, typer.Option(metavar="N", min=1, help="Tokens per sequence.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Shape of the model: a preset, a config.json, a Megatron argument file.",
        ),
    ] = None,
    facts: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A fact the log lacks (`logmfu schema` lists them). Repeatable.",
        ),
    ] = None,
    attention: Annotated[
        str, typer.Option(metavar="logged|full|half", help="How attention is counted in the FLOPs.")
    ] = "logged",
    since: Annotated[
        str | None, typer.Option(metavar="TIME|STEP", help="Leave out what is before.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME|STEP", help="Leave out what is after.")] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Zone of the log's clock: +02:00, Europe/Berlin.")
    ] = None,
    gpu_hour_price: Annotated[
        float | None,
        typer.Option(
            metavar="X", min=0.0, max=1e6, help="Price of one GPU-hour, to state losses in money."
        ),
    ] = None,
    grade_bands: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="Lower borders of excellent, good, average in percent (55,40,25)."
        ),
    ] = None,
    min_mfu: Annotated[
        str | None, typer.Option(metavar="X", help="Exit with 3 when the median MFU is below: 0.4 or 40%.")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="KIND[,KIND]", help="Exit with 3 when such a stall, incident or exit is found."
        ),
    ] = None,
) -> dict[str, Any]:
    """Options of an analysis, as they were given."""
    return dict(locals())


def with_analysis_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it receives them as one dict called ``analysis``."""
    shared, own = inspect.signature(analysis_options), inspect.signature(command)
    hints = {
        **get_type_hints(analysis_options, include_extras=True),
        **get_type_hints(command, include_extras=True),
    }
    mine = [parameter for name, parameter in own.parameters.items() if name != "analysis"]
    together = [*mine, *shared.parameters.values()]

    @wraps(command)
    def combined(**given: Any) -> None:
        analysis = {name: given.pop(name) for name in shared.parameters}
        command(**given, analysis=analysis)

    combined.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
            for parameter in together
        ]
    )
    combined.__annotations__ = {parameter.name: hints[parameter.name] for parameter in together}
    return combined


def library_options(given: Mapping[str, Any], *, start: float | None) -> dict[str, Any]:
    """The keyword arguments of :func:`logmfu.analyze`. ``start``: the run's first time stamp, for named zones."""
    return {
        "gpu": given["gpu"],
        "precision": given["precision"],
        "peak_tflops": given["peak_tflops"],
        "world_size": given["world_size"],
        "seq_len": given["seq_len"],
        "facts": {**_model(given["model"]), **settings(given["facts"] or [])},
        "attention": _one_of("--attention", given["attention"], ("logged", "full", "half")),
        "since": _bound("--since", given["since"]),
        "until": _bound("--until", given["until"]),
        "utc_offset": _zone(given["timezone"], start),
        "gpu_hour_price": given["gpu_hour_price"],
        **_bands(given["grade_bands"]),
        "min_mfu": _share("--min-mfu", given["min_mfu"]),
        "fail_on": kinds(given["fail_on"]),
    }


def _one_of(flag: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}", param_hint=flag)
    return value


def settings(pairs: list[str]) -> dict[str, Any]:
    """``NAME=VALUE`` texts as facts; values are read as Python prints them."""
    from logmfu.schema import FACTS
    from logmfu.values import literal

    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--set")
        if name not in FACTS and not name.startswith("arg."):
            near = [known for known in FACTS if name in known or known in name]
            raise typer.BadParameter(
                f"there is no fact {name!r}{': did you mean ' + ', '.join(near) if near else ''} (`logmfu schema` lists them)",
                param_hint="--set",
            )
        value = value.strip()
        found[name] = {"true": True, "false": False}.get(value.lower(), literal(value))
    return found


def _model(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    from logmfu.flops.evaluate import model_facts

    return model_facts(name)


def _bound(flag: str, text: str | None) -> int | float | None:
    """A step (whole number) or a time (ISO, to the second or day)."""
    if text is None:
        return None
    from datetime import UTC, datetime

    if text.strip().isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a step nor a time like 2026-03-04T05:06:07", param_hint=flag
        ) from None
    if moment.tzinfo is not None:
        raise typer.BadParameter(
            f"{text!r} has a zone, and the log's own clock is meant: give the time as it is printed there",
            param_hint=flag,
        )
    return moment.replace(tzinfo=UTC).timestamp()


def _zone(text: str | None, start: float | None) -> int | None:
    """Seconds east of UTC of a zone at the start of the run."""
    if text is None:
        return None
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    moment = datetime.fromtimestamp(start or 0.0, UTC).replace(tzinfo=None)
    try:
        zone = (
            datetime.fromisoformat(f"2000-01-01T00:00:00{text.strip()}").tzinfo
            if text.strip()[:1] in "+-"
            else ZoneInfo(text.strip())
        )
    except (ValueError, ZoneInfoNotFoundError):
        raise typer.BadParameter(
            f"{text!r} is no zone: +02:00, UTC, Europe/Berlin", param_hint="--timezone"
        ) from None
    offset = moment.replace(tzinfo=zone).utcoffset()
    return None if offset is None else int(offset.total_seconds())


def _share(flag: str, text: str | None) -> float | None:
    """``0.4`` or ``40%`` as 0.4."""
    if text is None:
        return None
    try:
        value = float(text.rstrip("% ")) / (100.0 if text.rstrip().endswith("%") else 1.0)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no share: 0.4 or 40%", param_hint=flag) from None
    if not 0.0 <= value <= 1.0:
        raise typer.BadParameter(
            f"{text} is not between 0 and 1; for percent write {text}%", param_hint=flag
        )
    return value


def _bands(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        bands = tuple(float(part.strip().rstrip("%")) / 100.0 for part in text.split(","))
    except ValueError:
        bands = ()
    if len(bands) != 3 or not 1.0 >= bands[0] > bands[1] > bands[2] >= 0.0:
        raise typer.BadParameter("three falling percentages, as in 55,40,25", param_hint="--grade-bands")
    return {"grade_bands": bands}


def kinds(text: str | None) -> tuple[str, ...]:
    """Comma separated kinds of stalls, incidents or exits."""
    if not text:
        return ()
    from logmfu.report import EXITS, LEDGER_KINDS
    from logmfu.schema import INCIDENTS

    known = {*LEDGER_KINDS, *EXITS, *INCIDENTS}
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    unknown = [kind for kind in found if kind not in known]
    if unknown:
        raise OptionError(
            f"--fail-on knows no {', '.join(unknown)}", hint="one of " + ", ".join(sorted(known))
        )
    return found

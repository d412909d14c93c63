"""``logmfu flops``: FLOPs, MFU and HFU by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from logmfu.cli.options import Format
from logmfu.errors import LogmfuError, OptionError, SourceError


def flops(
    layers: Annotated[int | None, typer.Option(help="Transformer layers.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden size.")] = None,
    heads: Annotated[int | None, typer.Option(help="Query heads.")] = None,
    kv_heads: Annotated[
        int | None, typer.Option(help="Key/value heads; as many as --heads without grouping.")
    ] = None,
    head_dim: Annotated[
        int | None, typer.Option(help="Size of one head; hidden / heads if not given.")
    ] = None,
    ffn: Annotated[
        int | None, typer.Option(help="Hidden size of the feed-forward block; 4 x hidden if not given.")
    ] = None,
    glu: Annotated[
        bool | None, typer.Option("--glu/--no-glu", help="The feed-forward block is gated (SwiGLU).")
    ] = None,
    vocab: Annotated[
        int | None, typer.Option(help="Vocabulary as the output layer sees it (padded).")
    ] = None,
    seq_len: Annotated[int | None, typer.Option(help="Tokens per sequence.")] = None,
    global_batch: Annotated[
        float | None, typer.Option(help="Sequences per step, over all devices.")
    ] = None,
    devices: Annotated[int | None, typer.Option(help="Devices, as ranks are counted.")] = None,
    iter_time: Annotated[float | None, typer.Option(metavar="SECONDS", help="Seconds per step.")] = None,
    tokens_per_s_per_device: Annotated[
        float | None, typer.Option(help="Tokens per second and device, instead.")
    ] = None,
    total: Annotated[
        float | None,
        typer.Option("--flops", help="FLOPs of a step over all devices, if known: needs no shape."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="Accelerator, as logs print it; see logmfu peaks.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="bf16, fp16, fp8, fp4, tf32, fp32 or int8. [default: bf16]")
    ] = None,
    peak_tflops: Annotated[float | None, typer.Option(help="Dense peak of one device, TFLOP/s.")] = None,
    attention: Annotated[
        str | None, typer.Option(help="full, half, exact or none. [default: as the convention counts]")
    ] = None,
    recompute: Annotated[
        str | None,
        typer.Option(help="none, full, early-stop or selective. [default: none, or as the formula has it]"),
    ] = None,
    convention: Annotated[
        str | None, typer.Option(help="Whose way of counting; all for a table. [default: canonical]")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Preset, config.json, argument file or dump.")] = None,
    facts: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any further fact: MoE, MLA, MTP, windows ..."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--from", metavar="ROWS.CSV", help="Evaluate many rows; columns named as the flags."),
    ] = None,
    form: Annotated[Format | None, typer.Option("--format", help="json, csv or table.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """FLOPs per token and step, TFLOP/s per device, MFU and HFU from a shape, a speed and a device."""
    given: dict[str, object] = {
        "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "ffn": ffn,
        "glu": glu, "vocab": vocab, "seq_len": seq_len, "global_batch": global_batch, "devices": devices,
        "iter_time": iter_time, "tokens_per_s_per_device": tokens_per_s_per_device, "flops": total, "gpu": gpu,
        "precision": precision, "peak_tflops": peak_tflops, "attention": attention, "recompute": recompute,
        "convention": convention, "model": model,
    }  # fmt: skip
    pairs = _pairs(facts or [])
    if pairs:
        from logmfu.flops.inputs import known

        known(pairs)
    given = {**pairs, **{name: value for name, value in given.items() if value is not None}}
    wanted = Format.json if as_json else form
    if rows:
        _many(rows, given, wanted or Format.csv)
    else:
        _one(given, wanted or Format.table)


def _one(given: dict[str, object], form: Format) -> None:
    from logmfu.flops.evaluate import evaluate, evaluate_all
    from logmfu.render import evaluation

    if given.get("convention") == "all":
        found = evaluate_all(given | {"convention": None})
        renderers = {
            Format.json: evaluation.as_json,
            Format.csv: evaluation.as_csv,
            Format.table: evaluation.side_by_side,
        }
        typer.echo(renderers[form](found))
        return
    one = evaluate(given)
    if form is Format.csv:
        typer.echo(evaluation.as_csv([one]))
    else:
        typer.echo(evaluation.as_json(one) if form is Format.json else evaluation.text(one))


def _many(path: Path, given: dict[str, object], form: Format) -> None:
    """Rows in, rows out on stdout; rows that cannot be evaluated are named on stderr."""
    from logmfu.flops.evaluate import evaluate_rows
    from logmfu.render import evaluation

    results = list(evaluate_rows(_read(path), given))
    errors = [(number, error) for number, (_, error) in enumerate(results, 1) if error]
    for number, error in errors:
        typer.echo(f"row {number}: {'; '.join((error.what, *error.facts))}", err=True)
    if len(errors) == len(results):
        raise LogmfuError(f"none of the {len(results)} rows of {path} could be evaluated")
    renderers = {
        Format.json: evaluation.rows_json,
        Format.csv: evaluation.rows_csv,
        Format.table: evaluation.rows_text,
    }
    typer.echo(renderers[form]([row for row, _ in results]))


def _read(path: Path) -> list[dict[str, str]]:
    import csv

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [{name: cell for name, cell in row.items() if name} for row in csv.DictReader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    if not rows:
        raise SourceError(f"{path} has no rows", hint="a header with the names of the flags, then rows")
    return rows


def _pairs(texts: list[str]) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise OptionError(f"--set {text!r} is not NAME=VALUE", hint="--set experts=64")
        pairs[name.strip().replace("-", "_")] = value.strip()
    return pairs

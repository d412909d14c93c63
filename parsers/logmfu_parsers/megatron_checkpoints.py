"""Megatron's checkpoint lines: started, handed to the background, complete, loaded."""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Field, Rule, Sample
from logmfu_parsers.megatron_steps import TEMPLATE

FIELDS = {"step": Field("step", values.integer), "path": Field("path", values.text)}

RULES: tuple[Rule, ...] = (
    Rule(
        name="save_start",
        kind="event",
        needle="saving checkpoint at iteration",
        pattern=r"saving checkpoint at iteration +(?P<step>\d+) to (?P<path>\S+)",
        fields=FIELDS,
        ignore=TEMPLATE,
        samples=(
            Sample(
                "saving checkpoint at iteration    1000 to /ckpt in torch_dist format",
                {"step": 1000, "path": "/ckpt"},
                version="core 0.6",
            ),
            Sample(
                " [2026-02-03 04:05:06.250000] saving checkpoint at iteration    1000 to /ckpt in torch_dist format",
                {"time": 1770091506.25},
                version="core 0.16",
            ),
            Sample(
                "global rank 0 is saving checkpoint at iteration     500 to /ckpt/iter_0000500/mp_rank_00/model_optim_rng.pt",
                {"step": 500},
                version="v1.0",
            ),
        ),
    ),
    Rule(
        name="save_scheduled",
        kind="event",
        needle="scheduled an async checkpoint save at iteration",
        pattern=r"scheduled an async checkpoint save at iteration +(?P<step>\d+) to (?P<path>\S+)",
        fields=FIELDS,
        ignore=TEMPLATE,
        samples=(
            Sample(
                "  scheduled an async checkpoint save at iteration    1000 to /ckpt",
                {"step": 1000},
                version="core 0.7",
            ),
            Sample(
                "  [2026-02-03 04:05:06.250000] scheduled an async checkpoint save at iteration    1000 to /ckpt",
                {"time": 1770091506.25},
                version="core 0.16",
            ),
        ),
    ),
    Rule(
        name="save_end",
        kind="event",
        needle="successfully saved ",
        pattern=r"successfully saved (?:(?P<local>local )?checkpoint (?:at|from) iteration +(?P<step>\d+)(?: to (?P<path>\S+))?|(?P<path>/\S*iter_(?P<step>\d+)\S*))",
        fields={**FIELDS, "local": Field("local", "local ".__eq__)},
        ignore=TEMPLATE,
        samples=(
            Sample(
                "  successfully saved checkpoint at iteration    1000 to /ckpt",
                {"step": 1000, "path": "/ckpt"},
                version="v2.0 to core 0.6",
            ),
            Sample(
                "  successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/8, p 1/4 ]",
                {"step": 1000},
                version="core 0.7; bracket since 0.12",
            ),
            Sample(
                "  [2026-02-03 04:05:06.250000] successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/8, gtp_remat 1/1, p 1/4 ]",
                {"time": 1770091506.25},
                version="core 0.16; gtp_remat in 0.19",
            ),
            Sample(
                "  successfully saved local checkpoint from iteration    1000",
                {"step": 1000, "local": True},
                version="core 0.9",
            ),
            Sample(
                "  successfully saved /ckpt/iter_0000500/mp_rank_00/model_optim_rng.pt",
                {"step": 500},
                version="v1.0",
            ),
        ),
    ),
    Rule(
        name="load_start",
        kind="event",
        needle=" checkpoint from ",
        pattern=r"\bloading (?:distributed |release )*checkpoint from (?P<path>\S+)(?: at iteration +(?P<step>\d+))?",
        fields=FIELDS,
        quiet=True,
        samples=(
            Sample(
                " loading checkpoint from /ckpt at iteration 1000",
                {"step": 1000, "path": "/ckpt"},
                version="up to core 0.5",
            ),
            Sample(
                " loading distributed checkpoint from /ckpt at iteration 1000",
                {"step": 1000},
                version="core 0.6",
            ),
            Sample(" loading release checkpoint from /ckpt", {"path": "/ckpt"}),
        ),
    ),
    Rule(
        name="load_end",
        kind="event",
        needle="successfully loaded ",
        pattern=r"successfully loaded (?:checkpoint from (?P<path>\S+)(?: +\[[^\]]*\])? at iteration +(?P<step>\d+)|(?P<path>/\S*iter_(?P<step>\d+)\S*))",
        fields=FIELDS,
        quiet=True,
        samples=(
            Sample(
                "  successfully loaded checkpoint from /ckpt at iteration 1000",
                {"step": 1000},
                version="up to core 0.5",
            ),
            Sample(
                "  successfully loaded checkpoint from /ckpt [ t 1/8, p 1/4 ] at iteration 1000",
                {"step": 1000},
                version="core 0.10",
            ),
            Sample(
                "  successfully loaded /ckpt/iter_0000500/mp_rank_00/model_optim_rng.pt",
                {"step": 500},
                version="v1.0",
            ),
        ),
    ),
    Rule(
        name="load_none",
        kind="event",
        needle="will not load any checkpoints and will start from random",
        pattern="will not load any checkpoints",
        samples=(Sample("    will not load any checkpoints and will start from random"),),
    ),
)

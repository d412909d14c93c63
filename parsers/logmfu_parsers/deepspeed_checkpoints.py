"""DeepSpeed's checkpoint lines.

Layouts: deepspeed/runtime/engine.py and runtime/checkpoint_engine/, v0.3.0 to v0.19.5 (2026-08-09).
Before v0.7.0 a save ends with ``zero checkpoint saved``, from v0.7.0 with ``is ready now!`` (from every
rank: the last one counts). Since v0.17.1 (2025-06) the end of a save is not printed. DeepSpeed-Chat's scripts
say that they save the model when training is done, and not when that is.
"""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Field, Rule, Sample

FIELDS = {
    "step": Field("step", values.integer),
    "rank": Field("rank", values.integer),
    "parts": Field("parts", values.integer),
    "path": Field("path", values.text),
    "tag": Field("tag", values.text),
    "error": Field("error", values.text),
}
# The default tag is global_step<N>: the step can be read from it and from every path below it.
_TAG = r"(?P<tag>(?:global_step(?P<step>\d++))?+\S*?)"
_PATH = r"(?P<path>(?:\S*\bglobal_step(?P<step>\d++))?+\S*?)"


def _event(name: str, event: str, needle: str, pattern: str, *samples: Sample, quiet: bool = False) -> Rule:
    pattern = pattern.replace("TAG", _TAG).replace("PATH", _PATH)
    return Rule(
        name=name,
        kind="event",
        event=event,
        needle=needle,
        pattern=pattern,
        fields={name: field for name, field in FIELDS.items() if f"(?P<{name}>" in pattern},
        ignore=r"\{",
        quiet=quiet,
        samples=samples,
    )


SAVES = (
    _event(
        "save_begins",
        "save_start",
        " to be saved!",
        r"\] Checkpoint TAG is about to be saved!",
        Sample("[Rank 0] [Torch] Checkpoint global_step40 is about to be saved!", {"step": 40}, "0.9.0"),
        Sample("[Rank 0] [Torch] Checkpoint best is about to be saved!", {"tag": "best"}, "0.17.6"),
    ),
    _event(
        "save_begins_early",
        "save_start",
        " is begin to save!",
        r"\] Checkpoint TAG is begin to save!",
        Sample("[Rank 0] [Torch] Checkpoint global_step40 is begin to save!", {"step": 40}, "0.8.0"),
        Sample("[Rank 0] [Torch] Checkpoint best is begin to save!", {"tag": "best"}, "0.17.1"),
    ),
    _event(
        "saving_model",
        "save_start",
        "Saving model checkpoint: ",
        r"Saving model checkpoint: PATH\s*+$",
        Sample(
            "[Rank 0] Saving model checkpoint: out/global_step40/mp_rank_00_model_states.pt", {"step": 40}
        ),
        Sample("[Rank 1] Saving model checkpoint: out/best/mp_rank_01_model_states.pt", {}, "0.6.5"),
    ),
    _event(
        "saving_last_model",
        "save_start",
        "saving ",
        r"^saving (?:the final )?model \.{3}",
        Sample("saving the final model ..."),
        Sample("saving model ..."),
        quiet=True,
    ),
    _event(
        "save_ready",
        "save_end",
        " is ready now!",
        r"\] Checkpoint TAG is ready now!",
        Sample("[Torch] Checkpoint global_step40 is ready now!", {"step": 40}, "0.9.0"),
        Sample("[Torch] Checkpoint best is ready now!", {"tag": "best"}, "0.9.0"),
    ),
    _event(
        "zero_saved",
        "save_end",
        "zero checkpoint saved ",
        r"zero checkpoint saved PATH\s*+$",
        Sample(
            "zero checkpoint saved out/global_step40/zero_pp_rank_0_mp_rank_00_optim_states.pt",
            {"step": 40},
        ),
        Sample(
            "bf16_zero checkpoint saved out/best/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            {},
            "0.6.5",
        ),
    ),
    _event(
        "save_failed",
        "save_failed",
        "Failed saving model checkpoint to ",
        r"Failed saving model checkpoint to (?P<path>\S++) with tag TAG\s*+$",
        Sample("Failed saving model checkpoint to out with tag global_step40", {"step": 40, "path": "out"}),
        Sample("Failed saving model checkpoint to out with tag best", {"tag": "best"}),
    ),
    _event(
        "nebula_save",
        "save_start",
        "[Nebula] Start Checkpoint for tag",
        r"\[Nebula\] Start Checkpoint for tag: ?TAG\s*+$",
        Sample("[Rank 0] [Nebula] Start Checkpoint for tag:global_step40", {"step": 40}),
        Sample("[Rank 0] [Nebula] Start Checkpoint for tag:best", {"tag": "best"}),
    ),
    _event(
        "nebula_in_tier1",
        "save_scheduled",
        " are saved in tier1",
        r"all files for TAG are saved in tier1",
        Sample(
            "[Nebula] all files for global_step40 are saved in tier1. It is ready to start persisting",
            {"step": 40},
        ),
        Sample(
            "[Nebula] all files for best are saved in tier1. It is ready to start persisting",
            {"tag": "best"},
        ),
    ),
    _event(
        "nebula_failed",
        "save_failed",
        "[Nebula] failed to commit",
        r"\[Nebula\] failed to commit the checkpoint",
        Sample("[Nebula] failed to commit the checkpoint, please check the log."),
    ),
    _event(
        "checkpoint_process_crashed",
        "save_failed",
        "Checkpoint subprocess crashed",
        r"Checkpoint subprocess crashed with error: (?P<error>.*+)",
        Sample(
            "[DecoupledCheckpointEngine] Checkpoint subprocess crashed with error: disk full",
            {"error": "disk full"},
        ),
    ),
)

LOADS = (
    _event(
        "loading",
        "load_start",
        "] Loading checkpoint from ",
        r"\] Loading checkpoint from PATH(?:\.{3})?\s*+$",
        Sample(
            "[Torch] Loading checkpoint from out/global_step40/mp_rank_00_model_states.pt...",
            {"step": 40},
            "0.9.0",
        ),
        Sample("[Torch] Loading checkpoint from out/best/mp_rank_00_model_states.pt...", {}, "0.9.0"),
    ),
    _event(
        "loaded",
        "load_end",
        "] Loaded checkpoint from ",
        r"\] Loaded checkpoint from PATH\.?\s*+$",
        Sample(
            "[Torch] Loaded checkpoint from out/global_step40/mp_rank_00_model_states.pt.",
            {"step": 40},
            "0.9.0",
        ),
        Sample("[Torch] Loaded checkpoint from out/best/mp_rank_00_model_states.pt.", {}, "0.9.0"),
    ),
    _event(
        "load_begins",
        "load_start",
        "] Begin Load checkpoint from ",
        r"\] Begin Load checkpoint from PATH(?:\.{3})?\s*+$",
        Sample(
            "[Rank 0] [Torch] Begin Load checkpoint from out/global_step40/mp_rank_00_model_states.pt...",
            {"step": 40},
        ),
        Sample(
            "[Rank 0] [Torch] Begin Load checkpoint from out/best/mp_rank_00_model_states.pt...",
            {},
            "0.17.1",
        ),
    ),
    _event(
        "load_ends",
        "load_end",
        "] End Load checkpoint from ",
        r"\] End Load checkpoint from PATH(?:\.{3})?\s*+$",
        Sample(
            "[Rank 0] [Torch] End Load checkpoint from out/global_step40/mp_rank_00_model_states.pt...",
            {"step": 40},
        ),
        Sample(
            "[Rank 0] [Torch] End Load checkpoint from out/best/mp_rank_00_model_states.pt...", {}, "0.17.1"
        ),
    ),
    _event(
        "zero_loading",
        "load_start",
        " zero partition checkpoints for rank ",
        r"loading (?P<parts>\d++) zero partition checkpoints for rank (?P<rank>\d++)",
        Sample("loading 8 zero partition checkpoints for rank 3", {"parts": 8, "rank": 3}),
    ),
    _event(
        "zero_loaded",
        "load_end",
        " ZeRO state_dicts for rank ",
        r"successfully read (?P<parts>\d++) ZeRO state_dicts for rank (?P<rank>\d++)",
        Sample("successfully read 8 ZeRO state_dicts for rank 3", {"parts": 8, "rank": 3}),
    ),
    _event(
        "universal_loaded",
        "load_end",
        "loaded universal zero checkpoints from ",
        r"loaded universal zero checkpoints from PATH for rank (?P<rank>\d++)",
        Sample(
            "loaded universal zero checkpoints from out/global_step40/zero for rank 3",
            {"step": 40, "rank": 3},
        ),
        Sample("loaded universal zero checkpoints from out/best/zero for rank 0", {"rank": 0}),
    ),
    _event(
        "no_checkpoint",
        "load_none",
        "Unable to find latest file at ",
        r"Unable to find latest file at (?P<path>[^\s,]++)",
        Sample(
            "Unable to find latest file at out/latest, if trying to load latest checkpoint please ensure this file exists",
            {"path": "out/latest"},
        ),
    ),
    _event(
        "nebula_loading",
        "load_start",
        "[Nebula] Loading ",
        r"\[Nebula\] Loading (?P<path>\S++) under tag TAG(?:\.{3}| from|\s|$)",
        Sample(
            "[Nebula] Loading mp_rank_00_model_states.pt under tag global_step40 from nebula path",
            {"step": 40},
        ),
        Sample("[Nebula] Loading mp_rank_00_model_states.pt under tag best...", {"tag": "best"}),
    ),
    _event(
        "nebula_loaded",
        "load_end",
        "[Nebula] Loaded ",
        r"\[Nebula\] Loaded (?P<path>\S++) under tag TAG(?:\.{1,3}| from|\s|$)",
        Sample(
            "[Nebula] Loaded mp_rank_00_model_states.pt under tag global_step40 from out.", {"step": 40}
        ),
        Sample("[Nebula] Loaded mp_rank_00_model_states.pt under tag best.", {"tag": "best"}),
    ),
)

RULES: tuple[Rule, ...] = (*SAVES, *LOADS)

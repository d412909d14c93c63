"""``logmfu flops`` and ``logmfu peaks``: numbers, formats, refusals, rows in and out, and the examples of the docs."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from logmfu.cli.flops import flops
from logmfu.cli.peaks import peaks
from logmfu.errors import LogmfuError, MissingFactError, OptionError, SourceError
from logmfu.flops import CONVENTIONS
from logmfu.flops.evaluate import evaluate

DOCS = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
LLAMA = "--layers 32 --hidden 4096 --heads 32 --kv-heads 8 --head-dim 128 --ffn 14336 --glu --vocab 128256 --seq-len 8192"
RUN = f"{LLAMA} --global-batch 128 --devices 8"

app = typer.Typer()
app.command()(flops)
app.command()(peaks)


def run(command: str | list[str]) -> str:
    """Standard output of a command that works."""
    arguments = shlex.split(command) if isinstance(command, str) else command
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


def answer(options: str) -> dict[str, Any]:
    """``logmfu flops --json``."""
    found = json.loads(run(f"flops {options} --json"))
    assert isinstance(found, dict)
    return found


def refused(command: str, error: type[LogmfuError] = OptionError) -> LogmfuError:
    """The error of a command that does not work."""
    with pytest.raises(error) as caught:
        run(command)
    return caught.value


def test_a_case_by_hand() -> None:
    """Llama-3-8B, 2.5 s per step of 128 x 8192 tokens on 64 H100: 57.9 GFLOPs per token, 379.5 TFLOP/s, 38.4 %."""
    found = answer(f"{LLAMA} --global-batch 128 --devices 64 --iter-time 2.5 --gpu H100 --precision bf16")
    assert found["flops_per_token"] == 57_912_852_480
    assert found["flops_per_iteration"] == 57_912_852_480 * 128 * 8192
    assert found["tflops_per_device"] == pytest.approx(379.54, abs=0.005)
    assert found["mfu"] == found["hfu"] == pytest.approx(379.54 / 989.4, abs=1e-5)
    assert found["alternatives"]["canonical, half attention"] == pytest.approx(
        found["mfu"] * 0.88876, rel=1e-4
    )
    assert found["peak"]["device"] == "H100 SXM5"


def test_tokens_per_second_say_the_same_as_seconds() -> None:
    """8000 tokens per second and device are 128 x 8192 / 8 / 8000 = 16.384 s per step."""
    by_time = answer(f"{RUN} --iter-time 16.384 --gpu H100")
    by_speed = answer(f"{LLAMA} --tokens-per-s-per-device 8000 --gpu H100")
    assert by_time["mfu"] == pytest.approx(by_speed["mfu"])
    assert by_speed["flops_per_iteration"] is None


def test_recomputation_is_in_hfu_alone() -> None:
    """Full recomputation: HFU is 1.315 times MFU."""
    found = answer(f"{LLAMA} --tokens-per-s-per-device 6000 --gpu H100 --recompute full")
    assert found["hfu"] / found["mfu"] == pytest.approx(1.315, abs=5e-4)


def test_a_shape_alone_gives_flops_per_token() -> None:
    """No speed, no device: no utilization, and nothing invented."""
    found = answer("--model llama3-8b --seq-len 8192")
    assert found["flops_per_token"] == 57_912_852_480
    assert [found[name] for name in ("flops_per_iteration", "tflops_per_device", "mfu", "hfu")] == [
        None
    ] * 4


def test_flops_over_time_over_devices() -> None:
    """9e14 FLOPs in 2 s on 3 devices are 150 TFLOP/s each."""
    found = answer("--flops 9e14 --iter-time 2 --devices 3 --peak-tflops 300")
    assert (found["tflops_per_device"], found["mfu"], found["hfu"]) == (150, 0.5, None)


def test_a_profiler_block_counts_three_forward_passes(tmp_path: Path) -> None:
    """5 TFLOPs forward per device and micro batch, two micro batches in 0.1 s: 300 TFLOP/s."""
    block = tmp_path / "profile.txt"
    block.write_text("world size:     4\nfwd flops per GPU:      5 T\n", encoding="utf-8")
    found = answer(f"--model {block} --iter-time 0.1 --set grad_accumulation=2")
    assert found["tflops_per_device"] == pytest.approx(300)


def test_flags_win_over_set_and_set_over_the_model() -> None:
    """A preset is a start: --set changes it, a flag changes that."""
    assert (
        answer("--model llama3-8b --seq-len 8192 --set vocab=128000 --vocab 128256")["flops_per_token"]
        == 57_912_852_480
    )
    smaller = answer("--model llama3-8b --seq-len 8192 --set vocab=128000")["flops_per_token"]
    assert 57_912_852_480 - smaller == 6 * 4096 * 256


def test_experts_and_packed_documents_by_set() -> None:
    """Facts without a flag of their own; two documents of half the length have half the attention."""
    experts = answer(f"{LLAMA} --set experts=8 --set router_topk=2 --set moe_ffn=14336 --set router=off")
    assert experts["flops_per_token"] == 57_912_852_480 + 6 * 32 * 3 * 4096 * 14336
    packed = answer(f"{LLAMA} --set packed_tokens=8192 --set packed_squares={2 * 4096**2}")
    assert packed["flops_per_token"] == answer(LLAMA.replace("8192", "4096"))["flops_per_token"]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_can_be_named(name: str) -> None:
    """The contract's names, each with its number."""
    found = answer(f"--model gpt3-175b --seq-len 2048 --convention {name}")
    assert found["convention"] == name
    assert found["flops_per_token"] == pytest.approx(1.08e12, rel=0.35)


def test_the_contract_names_of_conventions() -> None:
    """Names people and programs hold on to."""
    names = (
        "canonical palm sc21 korthikanti megatron-0.5 megatron-0.6 megatron-0.7 megatron-0.10 megatron-0.12 megatron-deepspeed-2022 "
        "megatron-deepspeed-2024 bigscience gpt-neox nemo torchtitan nanogpt nanochat maxtext llm-foundry hf-trainer 6n "
        "verl levanter eleuther accelerate"
    )
    assert set(names.split()) <= set(CONVENTIONS)


def test_conventions_side_by_side() -> None:
    """One row per convention with the ratio to canonical; above the peak there is no MFU."""
    text = run(f"flops {LLAMA} --tokens-per-s-per-device 8000 --gpu H100 --convention all")
    assert all(f"\n{name} " in f"\n{text}" for name in CONVENTIONS)
    assert re.search(r"megatron-0.12 +half +model +5.1470e\+10 +0.889 +411.8 +41.6%", text)
    listed = json.loads(
        run(
            "flops --model deepseek-v3 --seq-len 4096 --tokens-per-s-per-device 1500 --gpu H800 --convention all --json"
        )
    )
    trainer = next(one for one in listed if one["convention"] == "hf-trainer")
    assert trainer["tflops_per_device"] > 989.4
    assert trainer["mfu"] is None


def test_formats() -> None:
    """CSV has the contract's columns, table is for people."""
    row = next(csv.DictReader(io.StringIO(run(f"flops {RUN} --iter-time 20 --gpu H100 --format csv"))))
    assert {"flops_per_token", "flops_per_iteration", "tflops_per_device", "mfu", "hfu"} <= set(row)
    assert "TFLOP/s per device   379.5" in run(f"flops {RUN} --iter-time 20 --gpu H100")
    assert "precision not given: bf16 taken" in run(f"flops {RUN} --iter-time 20 --gpu H100")


def test_narrow_products_are_shown_against_both_peaks() -> None:
    """An FP8 run against 1978.9 and against 989.4."""
    found = answer(f"{LLAMA} --tokens-per-s-per-device 13812 --gpu H100 --precision fp8")
    assert found["alternatives"]["against the bf16 peak"] == pytest.approx(found["mfu"] * 2, rel=1e-3)


def test_what_cannot_be_is_refused_with_the_likely_cause() -> None:
    """Above 100 %, sparse peaks, unknown and ambiguous devices, lacking precisions."""
    over = refused(f"flops {LLAMA} --tokens-per-s-per-device 23000 --gpu H100")
    assert "MFU of 135% cannot be" in over.what
    assert "it fits this device at fp8 (1978.9)" in str(over)
    milliseconds = refused(f"flops {RUN} --iter-time 0.016384 --gpu H100")
    assert "a thousandth of it would be 46.8%" in str(milliseconds)
    tens = refused(f"flops {RUN} --iter-time 0.5 --gpu H100")
    assert "a thousandth of it would be 1.5%" in str(tens)
    endless = refused(f"flops {RUN} --iter-time 1e-300 --gpu H100")
    assert endless.what == "more than 1000 times the peak cannot be"
    sparse = refused(f"flops {LLAMA} --tokens-per-s-per-device 8000 --gpu H100 --peak-tflops 1979")
    assert "sparse bf16 figure of H100 SXM5; its dense bf16 peak is 989.4" in str(sparse)
    assert "--peak-tflops 989.4" in sparse.hint
    nameless = refused(f"flops {LLAMA} --tokens-per-s-per-device 8000 --gpu gfx942", MissingFactError)
    assert "MI300A, MI300X and MI325X" in str(nameless)
    narrow = refused(
        f"flops {LLAMA} --tokens-per-s-per-device 800 --gpu A100 --precision fp8", MissingFactError
    )
    assert "A100-SXM4 has bf16 312" in str(narrow)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ("--layers 2", MissingFactError, "--hidden N --heads N --vocab N"),
        ("--model llama3-8b", MissingFactError, "--seq-len N"),
        ("--model llama9 --seq-len 8", OptionError, "neither a file nor a preset"),
        ("--model llama3-8b --seq-len 8 --iter-time 2", MissingFactError, "--global-batch N --devices N"),
        ("--model llama3-8b --seq-len 8 --iter-time 0", OptionError, "above zero"),
        ("--model llama3-8b --seq-len 8 --convention mine", OptionError, "canonical, palm"),
        ("--model llama3-8b --seq-len 8 --attention some", OptionError, "full, half, exact"),
        ("--model llama3-8b --seq-len 8 --recompute some", OptionError, "none, full, early-stop"),
        ("--model llama3-8b --seq-len 8 --gpu H100 --precision fp7", OptionError, "bf16, fp16"),
        ("--model llama3-8b --seq-len 8 --peak-tflops 0", OptionError, "cannot be"),
        ("--set nonsense", OptionError, "NAME=VALUE"),
        ("--from missing.csv", SourceError, "cannot be read"),
    ],
)
def test_what_is_missing_or_wrong_is_named(options: str, error: type[LogmfuError], words: str) -> None:
    """Each refusal names the flag, or the choices."""
    assert words in str(refused(f"flops {options}", error))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--flops -1 --iter-time 2", "flops is -1.0, and must be above zero"),
        ("--flops 0", "above zero"),
        ("--flops 1e15 --iter-time 1 --model llama3-8b --layers 3", "leave out layers, model, or --flops"),
        ("--flops 1e15 --tokens-per-s-per-device 5", "do not go together"),
        ("--flops 1e15 --iter-time 1 --devices 0", "must be above zero"),
        ("--model llama3-8b --seq-len 8 --set routr_topk=2", "near: router_topk"),
        ("--model llama3-8b --seq-len 8 --set router_topk=2", "the model has no experts"),
        ("--model mixtral-8x7b --seq-len 8 --set router_topk=9", "cannot pass 9 of 8 experts"),
        ("--model llama3-8b --set moe_ffn=9 --seq-len 8", "moe_ffn says nothing without experts"),
        (
            "--model llama3-8b --set packed_tokens=9 --seq-len 8",
            "packed_tokens says nothing without packed_squares",
        ),
        ("--model llama3-8b --set packed_squares=9 --seq-len 8", "says nothing without packed_tokens"),
        ("--model llama3-8b --seq-len 8 --iter-time 1 --tokens-per-s-per-device 9", "cannot be compared"),
        (
            f"{RUN} --iter-time 1 --tokens-per-s-per-device 9",
            "makes 131072 tokens per second and device, but 9 is given",
        ),
        (
            "--model llama3-8b --seq-len 8 --devices 0 --iter-time 1 --global-batch 1",
            "world_size is 0, and must be above zero",
        ),
        ("--model llama3-8b --seq-len 8 --iter-time nan", "iter_time is nan, and must be a number"),
        ("--model llama3-8b --seq-len 0", "seq_len is 0, and must be above zero"),
        ("--model llama3-8b --seq-len 8 --layers -1", "a whole number from 0 to 100,000"),
    ],
)
def test_inputs_that_contradict_each_other_are_refused(options: str, words: str) -> None:
    """Nothing that was asked for is left out in silence."""
    assert words in str(refused(f"flops {options}"))


def test_a_hint_names_the_flag_there_is() -> None:
    """``--iter-time``, not ``--set iter_time``."""
    assert refused("flops --model llama3-8b --seq-len 8 --iter-time -2").hint == "--iter-time"
    assert refused("flops --flops -2").hint == "--flops"


def test_two_speeds_that_say_the_same_are_one() -> None:
    """Tables state both: 2.5 s for 128 x 8192 tokens on 64 devices are 6553.6 tokens/s each."""
    both = answer(f"{LLAMA} --global-batch 128 --devices 64 --iter-time 2.5 --tokens-per-s-per-device 6553")
    assert both["tflops_per_device"] == pytest.approx(379.54, abs=0.005)


def test_more_than_the_peak_is_no_mfu() -> None:
    """Half attention fits into the peak, full does not: it is said, and not printed as MFU."""
    options = (
        "--model llama3-405b --seq-len 131072 --tokens-per-s-per-device 200 --gpu H100 --attention half"
    )
    found = answer(options)
    assert set(found["alternatives"]) == {"canonical, half attention"}
    assert any("canonical, full attention: it is 115% of peak" in note for note in found["notes"])
    assert "MFU otherwise        11" not in run(f"flops {options}")
    narrow = answer(f"{LLAMA} --tokens-per-s-per-device 20000 --gpu H100 --precision fp8")
    assert "against the bf16 peak" not in narrow["alternatives"]
    assert any("no MFU against the bf16 peak" in note for note in narrow["notes"])


def test_milliseconds_given_as_seconds_are_suspected() -> None:
    """An MFU of 0.038 % would be a usual one in milliseconds."""
    found = answer(f"{LLAMA} --global-batch 128 --devices 64 --iter-time 2500 --gpu H100")
    assert any("given in milliseconds it would be 38.4%" in note for note in found["notes"])


def test_devices_that_were_not_given_are_said() -> None:
    """FLOPs over a time alone are those of one device."""
    found = answer("--flops 9e14 --iter-time 2")
    assert found["tflops_per_device"] == 450
    assert found["notes"][0].startswith("devices not given")


def test_a_peak_that_is_only_recalled_says_so() -> None:
    """The number is used, with a warning."""
    found = answer("--model llama2-7b --seq-len 4096 --tokens-per-s-per-device 1000 --gpu MI210")
    assert any("recalled only" in note for note in found["notes"])


def test_parts_of_a_package_say_what_to_count() -> None:
    """MFU on an MI250X is per GCD."""
    found = answer("--model llama2-7b --seq-len 4096 --tokens-per-s-per-device 1000 --gpu MI250X")
    assert "the peak is per GCD: --devices has to count those" in found["notes"]


def test_long_sequences_carry_a_caution() -> None:
    """The full count can exceed what the chip did."""
    assert any(
        "skip masked blocks" in note for note in answer("--model llama3-405b --seq-len 131072")["notes"]
    )


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Three rows: defaults from flags, a convention of its own, and one that cannot be evaluated."""
    path = tmp_path / "rows.csv"
    path.write_text(
        "name,model,seq_len,global_batch,devices,iter_time,gpu,precision,recompute,convention,attention\n"
        "llama,llama3-8b,8192,128,64,2.5,H100,bf16,,,\n"
        "bloom,bloom-176b,2048,2048,384,105.22,A100 80GB,bf16,full,bigscience,\n"
        "half,llama3-8b,8192,128,64,2.5,H100,bf16,,,half\n"
        "broken,llama9,8192,128,64,2.5,H100,bf16,,,\n",
        encoding="utf-8",
    )
    return path


def test_rows_come_back_with_five_columns_more(rows: Path) -> None:
    """Order and cells are kept; cells win over flags; a bad row is empty and named on stderr."""
    result = CliRunner().invoke(
        app, ["flops", "--from", str(rows), "--attention", "full"], catch_exceptions=False
    )
    back = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["name"] for row in back] == ["llama", "bloom", "half", "broken"]
    assert float(back[0]["mfu"]) == pytest.approx(0.3836, abs=5e-5)
    assert float(back[1]["tflops_per_device"]) == pytest.approx(149.02, abs=0.005)
    assert (round(float(back[1]["mfu"]), 3), round(float(back[1]["hfu"]), 3)) == (0.36, 0.478)
    assert float(back[2]["mfu"]) == pytest.approx(0.3409, abs=5e-5)
    assert [
        back[3][name]
        for name in ("flops_per_token", "flops_per_iteration", "tflops_per_device", "mfu", "hfu")
    ] == [""] * 5
    assert "row 4: model 'llama9' is neither a file nor a preset" in result.stderr


def test_rows_as_json_and_table(rows: Path) -> None:
    """Empty cells are null in JSON."""
    listed = json.loads(run(["flops", "--from", str(rows), "--format", "json"]))
    assert listed[3]["mfu"] is None
    assert listed[0]["flops_per_token"] == 57_912_852_480
    assert run(["flops", "--from", str(rows), "--format", "table"]).splitlines()[1].startswith("llama ")


def test_rows_that_all_fail_are_an_error(tmp_path: Path) -> None:
    """Never empty output with exit 0; a file without rows is one too."""
    path = tmp_path / "rows.csv"
    path.write_text("layers,extra\n3,1,2\n", encoding="utf-8")
    refused(f"flops --from {path}", LogmfuError)
    path.write_text("layers\n", encoding="utf-8")
    assert "no rows" in refused(f"flops --from {path}", SourceError).what


def test_the_table_of_peaks() -> None:
    """All rows, one device, one precision; a recalled number says so."""
    assert len(run("peaks").splitlines()) == 336
    assert "148     device  open tables agree" in run("peaks 'NVIDIA H20'")
    assert "recalled only" in run("peaks H20 --precision fp8")
    assert json.loads(run("peaks H100 --precision bf16 --format json"))[0]["tflops"] == 989.4
    assert run("peaks A100 --format csv").startswith("device,precision,tflops,source,evidence")
    assert "ambiguous" in refused("peaks gfx90a", MissingFactError).what
    refused("peaks A100 --precision fp4", MissingFactError)


CONSOLE = re.findall(r"```console\n(.*?)```", DOCS, flags=re.DOTALL)
COMMANDS = [part for block in CONSOLE for part in re.split(r"^\$ logmfu ", block, flags=re.MULTILINE)[1:]]


@pytest.mark.parametrize("part", COMMANDS, ids=lambda part: part[:60])
def test_examples_of_the_docs_print_what_they_say(part: str) -> None:
    """Every command of docs/metrics.md, with its output."""
    command, _, output = part.partition("\n")
    assert run(command).rstrip() == output.rstrip()


def test_python_of_the_docs_runs() -> None:
    """Every assertion of docs/metrics.md holds."""
    blocks = re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/metrics.md", "exec"), {})  # noqa: S102 - our own page


def test_the_docs_list_every_convention() -> None:
    """A convention that is not in docs/metrics.md fails."""
    assert all(f"| `{name}` |" in DOCS for name in CONVENTIONS)


def test_published_columns_are_understood() -> None:
    """Names that tables use for the same things."""
    found = evaluate(
        {
            "model": "llama3-8b",
            "seq": 8192,
            "tokens_per_s_per_gpu": 8000,
            "device": "H100",
            "peak_tflops": 989.4,
        }
    )
    assert found.mfu == pytest.approx(0.4683, abs=5e-5)

"""The table of peaks: names as logs print them, precisions, evidence, and figures that are not dense peaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logmfu import hardware

NAMES = [(device, name) for device in hardware.devices() for name in (device, *hardware.aliases(device))]


@pytest.mark.parametrize(("device", "name"), NAMES)
def test_every_name_of_the_table_finds_its_device(device: str, name: str) -> None:
    """A device's own name and each of its aliases lead to it and to no other."""
    assert hardware.find(name) == device


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM5"),
        ("H100", "H100 SXM5"),
        ("H100-SXM5-80GB", "H100 SXM5"),
        ("8xH100", "H100 SXM5"),
        ("DGX-H100", "H100 SXM5"),
        ("h100_80gb", "H100 SXM5"),
        ("NVIDIA H100 80GB PCIe", "H100 PCIe"),
        ("NVIDIA H20", "H20"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA GH200 96GB", "GH200"),
        ("NVIDIA GB200 NVL72", "GB200"),
        ("A100 80GB", "A100-SXM4"),
        ("A100 (NVIDIA Ampere)", "A100-SXM4"),
        ("A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("L40S", "L40S"),
        ("AMD Instinct MI250X", "MI250X GCD"),
        ("TPU v5p-512", "TPU v5p"),
        ("TPU v5 lite", "TPU v5e"),
        ("Ascend910B3", "Ascend 910B3"),
        ("trn2.48xlarge", "Trainium2 logical core (LNC=2)"),
    ],
)
def test_names_match_by_whole_words(name: str, device: str) -> None:
    """Vendor, memory size and form factor may differ; H20 is not H200 and L40 is not L40S."""
    assert hardware.find(name) == device


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gfx942", "MI300A, MI300X and MI325X"),
        ("gfx942:sramecc+:xnack-", "MI300A, MI300X and MI325X"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a fraction of a device"),
        ("AMD Instinct MI300X CPX", "a fraction of a device"),
        ("V100", "three parts"),
        ("NVIDIA H100 80GB HBM2e", "ambiguous"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "near: GeForce RTX 4090"),
        ("NVIDIA RTX A4000", "not in the table"),
        ("T400", "not in the table"),
        ("Ascend910_0000", "not in the table"),
        ("", "not in the table"),
    ],
)
def test_unknown_and_ambiguous_names_are_explained(name: str, why: str) -> None:
    """No device is guessed; the explanation says what the name could be."""
    assert hardware.find(name) is None
    assert why in hardware.explain(name)


def test_a_found_name_is_explained_too() -> None:
    """The explanation of a known name is its device."""
    assert hardware.explain("NVIDIA H100 PCIe") == "'NVIDIA H100 PCIe' is H100 PCIe"


@given(st.text(max_size=40))
def test_any_text_is_a_device_or_nothing(text: str) -> None:
    """A hostile name never raises, and is explained."""
    assert hardware.find(text) in {None, *hardware.devices()}
    assert hardware.explain(text)


@given(
    st.sampled_from([name for _, name in NAMES]),
    st.sampled_from(["Laptop", "MIG", "Ti", "SUPER", "CPX", "Mobile"]),
)
def test_a_word_that_is_left_over_makes_another_part(name: str, word: str) -> None:
    """A peak is never borrowed from a part whose name has one word less."""
    assert hardware.find(f"{name} {word}") in {None, "GeForce RTX 3090 Ti"}


@pytest.mark.parametrize(
    ("device", "precision", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", 989.4),
        ("H100 SXM5", "fp8", 1978.9),
        ("H800", "torch.bfloat16", 989.4),
        ("H20", "bf16", 148),
        ("A100", "bf16", 312),
        ("A100", "int8", 624),
        ("B200", "fp4", 9000),
        ("GB200", "MXFP8", 5000),
        ("MI250X", "bf16", 191.5),
        ("TPU v3", "bf16", 61.5),
        ("NVIDIA GeForce RTX 4090", "bf16", 165.2),
    ],
)
def test_peaks_are_dense_and_per_counted_device(device: str, precision: str, tflops: float) -> None:
    """Half of what is marketed with sparsity; one GCD, one core where those are counted."""
    row = hardware.peak(device, precision)
    assert row is not None
    assert row.tflops == tflops


@pytest.mark.parametrize(
    ("device", "precision"), [("V100-SXM2", "bf16"), ("A100", "fp8"), ("gfx90a", "bf16"), ("H100", "x")]
)
def test_a_precision_a_device_lacks_has_no_peak(device: str, precision: str) -> None:
    """Nothing is borrowed from another precision."""
    assert hardware.peak(device, precision) is None


def test_every_row_shows_its_source_and_evidence() -> None:
    """335 rows of 79 devices, each with a source; a recalled number says so."""
    rows = hardware.rows()
    assert (len(rows), len(hardware.devices())) == (335, 79)
    assert all(row.source and row.evidence and row.tflops > 0 for row in rows)
    assert len([row for row in rows if row.recalled]) == 109
    assert len({(row.device, row.precision) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("part", "whole", "parts"),
    [
        ("MI250X GCD", "MI250X (package)", 2),
        ("MI250 GCD", "MI250 (package)", 2),
        ("TPU v3 core", "TPU v3 chip", 2),
        ("TPU7x (Ironwood) device", "TPU7x (Ironwood) chip", 2),
        ("Trainium2 logical core (LNC=2)", "Trainium2 chip", 4),
        ("Ascend 910C die", "Ascend 910C package", 2),
    ],
)
def test_parts_add_up_to_the_package(part: str, whole: str, parts: int) -> None:
    """A GCD is half a package, a core half a chip."""
    one, all_of_it = hardware.peak(part, "bf16"), hardware.peak(whole, "bf16")
    assert one is not None
    assert all_of_it is not None
    assert one.tflops * parts == pytest.approx(all_of_it.tflops, rel=1e-3)
    assert one.scope != "device"


@pytest.mark.parametrize(
    ("figure", "device", "precision", "looks_like"),
    [
        (1979, "H100", "bf16", "sparse bf16 figure of H100 SXM5; its dense bf16 peak is 989.4"),
        (1979, None, "bf16", "sparse bf16 figure of H100 SXM5"),
        (3958, "H100", "bf16", "sparse fp8 figure of H100 SXM5; its dense bf16 peak is 989.4"),
        (3958, "H100", "fp8", "sparse fp8 figure"),
        (624, "A100", "bf16", "sparse bf16 figure of A100-SXM4; its dense bf16 peak is 312"),
        (4500, None, "bf16", "sparse bf16 figure of B200"),
        (733, "L40S", "bf16", "fp8 figure of L40S"),
        (1979, "H100", "fp8", None),
        (989, "H100", "bf16", None),
        (989, "H100", "fp8", None),
        (123, "TPU v3", "bf16", None),
        (1000, "H100", "bf16", None),
        (300, "A40", "bf16", "sparse bf16 figure of A40"),
        (300, None, "bf16", None),
    ],
)
def test_figures_that_are_not_the_dense_peak(
    figure: float, device: str | None, precision: str, looks_like: str | None
) -> None:
    """A sparse or other-precision figure is named; a chip counted whole and a lower peak are not suspicious."""
    suspect = hardware.sparse_suspect(figure, device=device, precision=precision)
    assert (suspect is None) == (looks_like is None)
    assert suspect is None or looks_like in suspect.text


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("amp_bf16", "bf16"),
        ("torch.float16", "fp16"),
        ("MXFP8", "fp8"),
        ("FP8-CS", "fp8"),
        ("NVFP4", "fp4"),
        ("x", None),
    ],
)
def test_precisions_are_read_in_any_spelling(text: str, precision: str | None) -> None:
    """The spelling of logs and tables leads to one of seven names."""
    assert hardware.precision_of(text) == precision

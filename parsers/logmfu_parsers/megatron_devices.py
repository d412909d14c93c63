"""Names of accelerators, where a job script or a program prints them."""

from __future__ import annotations

from logmfu import values
from logmfu.parsing import Field, Rule, Sample

RULES: tuple[Rule, ...] = (
    Rule(
        name="nvidia_device",
        kind="fact",
        event="accelerator",
        needle="NVIDIA ",
        pattern=r"(?:^\|? *(?:GPU )?\d+:? +|GPU[^:|]{0,20}: *)(?P<value>NVIDIA (?:[A-Z]{1,3}\d|GeForce|RTX|Tesla|Quadro)[\w -]*?)(?= *\(UUID|  | *\||$)",
        fields={"value": Field("value", values.text)},
        quiet=True,
        samples=(
            Sample(
                "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444444444444)",
                {"accelerator": "NVIDIA H100 80GB HBM3"},
                version="nvidia-smi -L",
            ),
            Sample(
                "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |",
                {"accelerator": "NVIDIA A100-SXM4-80GB"},
                version="nvidia-smi",
            ),
            Sample("GPU name: NVIDIA GB200", {"accelerator": "NVIDIA GB200"}),
        ),
    ),
    Rule(
        name="amd_device",
        kind="fact",
        event="accelerator",
        needle="AMD Instinct ",
        pattern=r"(?P<value>AMD Instinct MI\w+)",
        fields={"value": Field("value", values.text)},
        samples=(
            Sample(
                "  Marketing Name:          AMD Instinct MI300X",
                {"accelerator": "AMD Instinct MI300X"},
                version="rocminfo",
            ),
        ),
    ),
)

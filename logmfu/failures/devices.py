"""Accelerators, their drivers, and the memory of the host.

Layouts: PyTorch CUDACachingAllocator.cpp of 1.x to 2.9, NVIDIA's Xid lines, the Linux OOM killer.
"""

from __future__ import annotations

from logmfu.failures.reading import CAUSE, FIELDS, SYMPTOM
from logmfu.parsing import Rule, Sample

_SIZE = r"[\d.]++ (?:[KMGT]i?B|bytes)"
_XID = r"NVRM: Xid \((?:PCI:)?(?P<device>[0-9A-Fa-f:.]++)\): "
_XID_REST = r"(?:, pid='?(?P<pid>\d++)'?)?+(?:, )?+(?P<reason>[^\n]{0,200})"
_OF_THE_PROGRAM = r"(?P<code>13|31|43|45)\b"
"""Codes that usually follow from what the program did, or from another error (NVIDIA's Xid catalogue)."""

RULES: tuple[Rule, ...] = (
    Rule(
        name="device_memory",
        kind="event",
        event="oom",
        needle="out of memory",
        pattern=r"\b(?:CUDA|HIP|NPU|XPU|MUSA)(?: error:)? out of memory"
        rf"(?:\. Tried to allocate (?P<tried_bytes>{_SIZE})(?:[. (]{{1,3}}(?:GPU|NPU|XPU) (?P<device>\d++)"
        rf"(?:(?: has a total capaci?ty of|;) (?P<total_bytes>{_SIZE})(?: of which (?P<free_bytes>{_SIZE}) is free)?+"
        rf"(?: total capacity; [^;]{{1,60}}; (?P<free_bytes>{_SIZE}) free)?+)?+)?+)?+",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 6 has a total capacity of 80.00 GiB "
                "of which 1.00 GiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use.",
                {
                    "tried_bytes": 4 * 2.0**30,
                    "device": "6",
                    "total_bytes": 80 * 2.0**30,
                    "free_bytes": 2.0**30,
                    "role": "cause",
                },
            ),
            Sample(
                "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 MiB (GPU 1; 40.00 GiB total capacity; "
                "38.00 GiB already allocated; 8.00 MiB free; 39.00 GiB reserved in total by PyTorch)",
                {
                    "tried_bytes": 16 * 2.0**20,
                    "device": "1",
                    "total_bytes": 40 * 2.0**30,
                    "free_bytes": 8 * 2.0**20,
                },
            ),
            Sample("RuntimeError: HIP error: out of memory", {"role": "cause"}),
        ),
    ),
    Rule(
        name="device_memory_xla",
        kind="event",
        event="oom",
        needle="RESOURCE_EXHAUSTED",
        pattern=r"RESOURCE_EXHAUSTED: [^\n]{0,200}?[Oo]ut of memory(?: while trying to allocate (?P<tried_bytes>\d++))?+",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2048 bytes.",
                {"tried_bytes": 2048.0},
            ),
        ),
    ),
    Rule(
        name="uncorrectable_ecc",
        kind="event",
        event="ecc_error",
        needle="uncorrectable ECC error",
        pattern=r"uncorrectable ECC error encountered",
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample("RuntimeError: CUDA error: uncorrectable ECC error encountered", {"role": "cause"}),
        ),
    ),
    Rule(
        name="cuda_error",
        kind="event",
        event="cuda_error",
        needle="CUDA error: ",
        pattern=r"CUDA error: (?!out of memory|uncorrectable ECC|initialization)(?P<reason>[^\n]{1,160})",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "RuntimeError: CUDA error: an illegal memory access was encountered",
                {"reason": "an illegal memory access was encountered", "role": "cause"},
            ),
        ),
    ),
    Rule(
        name="hip_error",
        kind="event",
        event="cuda_error",
        needle="HIP error: ",
        pattern=r"HIP error: (?!out of memory)(?P<reason>[^\n]{1,160})",
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "RuntimeError: HIP error: unspecified launch failure",
                {"reason": "unspecified launch failure"},
            ),
        ),
    ),
    Rule(
        name="device_handle",
        kind="event",
        event="cuda_error",
        needle="Unable to determine the device handle for",
        pattern=r"Unable to determine the device handle for \w*? ?(?P<device>[0-9A-Fa-f:.]{4,40}): (?P<reason>[^\n]{0,100})",
        fields=FIELDS,
        constants=CAUSE,
        samples=(
            Sample(
                "Unable to determine the device handle for GPU0000:5E:00.0: Unknown Error",
                {"device": "0000:5E:00.0", "reason": "Unknown Error"},
            ),
        ),
    ),
    Rule(
        name="xid_hardware",
        kind="event",
        event="xid",
        needle="NVRM: Xid",
        pattern=_XID + rf"(?!{_OF_THE_PROGRAM.replace('?P<code>', '?:')})(?P<code>\d++)" + _XID_REST,
        fields=FIELDS,
        constants=CAUSE,
        quiet=True,
        samples=(
            Sample(
                "NVRM: Xid (PCI:0000:5e:00): 79, pid=910, name=python3, GPU has fallen off the bus.",
                {
                    "device": "0000:5e:00",
                    "code": 79,
                    "pid": 910,
                    "reason": "name=python3, GPU has fallen off the bus.",
                },
            ),
            Sample(
                "NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
                {"code": 79, "role": "cause"},
            ),
        ),
    ),
    Rule(
        name="xid_program",
        kind="event",
        event="xid",
        needle="NVRM: Xid",
        pattern=_XID + _OF_THE_PROGRAM + _XID_REST,
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "NVRM: Xid (0000:03:00): 31, Ch 00000010, MMU Fault",
                {"device": "0000:03:00", "code": 31, "role": "symptom"},
            ),
        ),
    ),
    Rule(
        name="kernel_oom_killer",
        kind="event",
        event="host_oom",
        needle="ut of memory: Killed process",
        pattern=r"ut of memory: Killed process (?P<pid>\d++) \((?P<reason>[^()]{1,60})\)",
        fields=FIELDS,
        constants=CAUSE,
        samples=(
            Sample(
                "Memory cgroup out of memory: Killed process 910 (python) total-vm:1024kB, anon-rss:512kB",
                {"pid": 910, "reason": "python", "role": "cause"},
            ),
        ),
    ),
    Rule(
        name="container_oom",
        kind="event",
        event="host_oom",
        needle="OOMKilled",
        pattern=r"\bOOMKilled\b",
        constants=CAUSE,
        quiet=True,
        samples=(Sample("State: Terminated  Reason: OOMKilled  Exit Code: 137", {"role": "cause"}),),
    ),
)

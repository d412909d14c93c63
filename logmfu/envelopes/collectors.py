"""Prefixes of launchers, schedulers and collectors: each function is ``(text, found) -> rest, or None``.

Every pattern is anchored and linear. Sources: PyTorch tail_log.py, sagemaker_training 5.1.4, Ray
worker.py, the Kubernetes CRI log format, and the manuals of Open MPI, docker, syslog and ts.
"""

from __future__ import annotations

import re

from logmfu.envelopes.clocks import MONTHS, date_s, day_s, moment, offset_s
from logmfu.envelopes.found import Found

_DATE, _CLOCK, _FRACTION = r"(\d{4}-\d\d-\d\d)", r"(\d\d:\d\d:\d\d)", r"(?:[.,](\d{1,9}))?+"
_MONTH = "(" + "|".join(MONTHS) + ")"
_ROLE = re.compile(r"\[(rank|default|trainer|worker|main)(\d{1,7})(?:[-_]\w[^\]\s]{0,60})?\]:")
_MPI = re.compile(r"\[([^\[\]\s<>]{1,60})\](?:\[([\w.-]{1,80}):\d+\])?<std(out|err)>: ?")
_MPI_RANK = re.compile(r"[^,]*,(?:mpirank:)?(\d{1,7})(?:,([\w.-]+))?$")
_POD = re.compile(r"\[(?:pod/)([\w.-]{1,253})/[\w.-]{1,253}\] ")
_BOOT = re.compile(r"\[ *\d{1,9}\.\d{6}\] ")
_CTIME = re.compile(
    rf"(\[)?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {_MONTH} +(\d{{1,2}}) {_CLOCK} (?:([A-Z]{{2,5}}) )?(\d{{4}})(?(1)\]|(?:<std(out|err)>:)?+)(?: |$|(?<=:))"
)
DATED = re.compile(rf"{_DATE}([T ]){_CLOCK}{_FRACTION}(Z|[+-]\d\d:?\d\d)?+")
_CRI = re.compile(r" (stdout|stderr) ([FP])(?::\S*)?(?: |$)")
_SYSLOG = re.compile(r" ([\w.-]{1,253}) (?:kernel|[\w./@-]{1,100}\[\d+\]): ")
_EPOCH_MS = re.compile(r"(\d{13})\t")
_MONTH_FIRST = re.compile(rf"{_MONTH} ([ 0-3]?\d) {_CLOCK}(?= )")
_RAY = re.compile(
    r"\((?:(?:[^()\s]{1,120} )?pid=\d+|(?:raylet|autoscaler|scheduler)(?: \+[\dhms]+)?)(?:, ip=([^()\s]{1,45}))?\)(?: |$)"
)
_RAY_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")


def role(text: str, found: Found) -> str | None:
    """``[default3]:`` is a local rank; ``[rank3]:`` a rank, and the one inside another is the global one."""
    match = _ROLE.match(text)
    if not match:
        return None
    number, end = int(match[2]), match.end()
    if match[1] == "rank":
        if found.nested and found.rank is not None:
            found.local_rank = found.rank
        found.rank = number
        end += text.startswith(" ", end)
    else:
        found.local_rank = number
    found.nested = True
    return text[end:]


def mpi(text: str, found: Found) -> str | None:
    """``[1,3]<stdout>:`` of Open MPI and ``[1,mpirank:3,algo-1]<stdout>:`` of SageMaker."""
    match = _MPI.match(text)
    if not match:
        return None
    inside = _MPI_RANK.match(match[1])
    if inside:
        found.rank = int(inside[1])
    found.host = match[2] or (inside and inside[2]) or found.host
    found.stream = "std" + match[3]
    return text[match.end() :]


def pod(text: str, found: Found) -> str | None:
    """``[pod/train-0/main] `` of ``kubectl logs --prefix``."""
    match = _POD.match(text)
    if not match:
        return None
    found.host = match[1]
    return text[match.end() :]


def boot(text: str, found: Found) -> str | None:
    """``[12345.678901] `` of the kernel: seconds since boot, which are no wall clock."""
    match = _BOOT.match(text)
    return text[match.end() :] if match else None


def ctime(text: str, found: Found) -> str | None:
    """``Wed Mar  4 05:06:07 2026``: of ``mpirun`` before ``<stdout>:``, of ``dmesg -T`` and ``date``."""
    match = _CTIME.match(text)
    if not match:
        return None
    time = moment(day_s(int(match[6]), MONTHS[match[2]], int(match[3])), match[4])
    if time is None:
        return None
    offset = 0 if match[5] in {"UTC", "GMT"} else None
    if match[7]:
        found.stream = "std" + match[7]
        found.years.anchor(time)
        found.arrive(time, offset)
    else:
        found.years.anchor(time)
        found.stamp(time, offset)
    return text[match.end() :]


def collected(text: str, end: int, found: Found, time: float, offset: int | None) -> str | None:
    """What follows a collector's time that ends at ``end``; syslog puts host and program there."""
    if end < len(text) and text[end] not in " \t":
        return None
    found.years.anchor(time)
    found.arrive(time, offset)
    syslog = _SYSLOG.match(text, end)
    if syslog:
        found.host = syslog[1]
        return text[syslog.end() :]
    return text[end + 1 :]


def container(text: str, found: Found) -> tuple[str, bool] | None:
    """Rest of a CRI line ``2026-03-04T05:06:07.1Z stdout F MSG``, and whether the line ends with it."""
    match = DATED.match(text)
    tail = _CRI.match(text, match.end()) if match and match[2] == "T" else None
    time = moment(date_s(match[1]), match[3], match[4]) if match and tail else None
    if match is None or tail is None or time is None:
        return None
    found.years.anchor(time)
    found.arrive(time, offset_s(match[5]))
    found.stream = tail[1]
    return text[tail.end() :], tail[2] == "F"


def epoch_ms(text: str, found: Found) -> str | None:
    """Milliseconds since 1970 and a tab, of CloudWatch."""
    match = _EPOCH_MS.match(text)
    if not match:
        return None
    found.years.anchor(int(match[1]) / 1000)
    found.arrive(int(match[1]) / 1000, 0)
    return text[match.end() :]


def month_first(text: str, found: Found) -> str | None:
    """``Mar  4 05:06:07 node-7 python[4242]: MSG`` of syslog, ``Mar 04 05:06:07 MSG`` of ``ts``."""
    match = _MONTH_FIRST.match(text)
    if not match:
        return None
    midnight = found.years.midnight(MONTHS[match[1]], int(match[2]))
    time = moment(midnight, match[3])
    if time is not None:
        found.arrive(time)
    syslog = _SYSLOG.match(text, match.end())
    if syslog:
        found.host = syslog[1]
        return text[syslog.end() :]
    return text[match.end() + 1 :]


def ray(text: str, found: Found) -> str | None:
    """``(RayTrainWorker pid=4242, ip=10.0.0.1) MSG``."""
    match = _RAY.match(text)
    if not match:
        return None
    found.host = match[1] or found.host
    rest = text[match.end() :]
    return _RAY_REPEATED.sub("", rest) if "x across cluster]" in rest else rest

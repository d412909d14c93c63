"""The shortest names that still tell the inputs apart."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import commonpath
from pathlib import PurePath

from logmfu.report import Report


def short_names(report: Report) -> Mapping[str, str]:
    """Each input's path to the name to show: its own name, or its path below the folder all share."""
    paths = [each.path for each in report.inputs]
    own = {path: PurePath(path).name or path for path in paths}
    if len(set(own.values())) == len(set(paths)):
        return own
    try:
        shared = commonpath(paths)
    except ValueError:  # absolute and relative paths mixed, or two drives
        return {path: path for path in paths}
    return {path: path[len(shared) :].lstrip("/\\") or path for path in paths}

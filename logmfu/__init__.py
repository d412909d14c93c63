"""Read the logs of large training runs: how well the accelerators were used, and where the time went.

>>> run = logmfu.read("run.log")                    # Run: .steps .events .timers .facts
>>> report = logmfu.analyze(run, gpu="H100 SXM")
>>> report.to_json(); report.to_markdown(); figure = report.plot()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logmfu.analysis import analyze
    from logmfu.reading import read
    from logmfu.report import Report
    from logmfu.tables import Run

__version__ = "0.1.0"
__all__ = ["Report", "Run", "__version__", "analyze", "read"]

_HOMES = {
    "analyze": "logmfu.analysis",
    "read": "logmfu.reading",
    "Report": "logmfu.report",
    "Run": "logmfu.tables",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: ``logmfu --help`` loads no pandas."""
    if name not in _HOMES:
        raise AttributeError(f"module 'logmfu' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

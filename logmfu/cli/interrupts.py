"""Ctrl-C ends the program, wherever it is.

Python raises ``KeyboardInterrupt`` wherever the interpreter happens to be. In a finalizer or a callback
from C it is printed or dropped, and the program goes on. So it is raised again until the program ends.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from types import FrameType

AGAIN_S = 0.5
"""Seconds after which an interrupt is raised again: longer than tidying up takes."""


class Interrupts:
    """Whether the program was interrupted; remembered where the exception got lost."""

    def __init__(self) -> None:
        self.seen = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # background jobs ignore it
            signal.signal(signal.SIGINT, self._take)
            sys.unraisablehook = self._unraisable

    def _take(self, number: int, frame: FrameType | None) -> None:
        if not self.seen:
            self.seen = True
            threading.Thread(target=self._insist, daemon=True).start()
        raise KeyboardInterrupt

    def _insist(self) -> None:
        while True:
            threading.Event().wait(AGAIN_S)
            _thread.interrupt_main()

    @staticmethod
    def _unraisable(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(lost)

"""Processes that read files, and ranges of plain ones, side by side.

They are programs of their own, not forks: they start with little, whatever the caller has loaded or
locked, and end when their input does, also when the caller is killed.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count, islice
from queue import SimpleQueue
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING

from logmfu.bulk import available
from logmfu.source import Source

if TYPE_CHECKING:
    from logmfu.bulk.job import Job, Result
    from logmfu.bulk.plan import Plan

    _Begun = tuple[Job, Future[Result | None]]

READY = b"\0logmfu worker\n"
"""What a process says when it has loaded everything."""
JOB = 16 << 20
"""Bytes of a range."""
AHEAD = 32
"""Jobs that may be begun before the first of them is asked for."""
HELD = 48 << 20
"""Bytes of results that may wait to be asked for: beyond that only the one that is wanted is begun."""
WORTH = 160 << 20
"""Bytes below which more processes do not pay for their start."""
PACKED = 8 << 20
"""Bytes up to which a compressed file is read by one of them, as a whole: parts of it may be wanted again."""
EXPANDS = 8
"""Times that a compressed log grows, about."""
MOST = 16
"""Processes at most: beyond that, memory and disk are the limit."""


def hands(sources: Sequence[Source]) -> int:
    """How many processes beside this one the inputs are worth; 0 for none."""
    sizes = [source.size or 0 for source in sources if not source.splittable and ranges(source)]
    work = sum(source.size or 0 for source in sources if source.splittable)
    work += EXPANDS * sum(sizes) if len(sizes) > 1 else 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if work < WORTH or cores < 2 or not sys.executable or not available():
        return 0
    return min(cores, MOST, work // (WORTH // 2))


def ranges(source: Source) -> list[tuple[int, int]]:
    """The ranges a file is read in: a compressed one in one, if it is small; none where that cannot be done."""
    size = source.size or 0
    if not source.splittable:
        return [(0, size)] if source.separate and size <= PACKED else []
    return [(start, min(start + JOB, size)) for start in range(0, size, JOB)]


class Crew:
    """Some processes, and the jobs they have. This process does those they have not begun or died of.

    They start at once, and load what they need while this process finds out what to look for.
    """

    def __init__(self, size: int) -> None:
        self._all: list[subprocess.Popen[bytes]] = []
        self._idle: SimpleQueue[subprocess.Popen[bytes] | None] = SimpleQueue()
        """Those without a job; None when there are none any more."""
        self._lost: list[subprocess.Popen[bytes]] = []
        self._held, self._wanted, self._turn, self._room = 0, 0, 0, Condition()
        """Bytes of results that wait, the number of the job whose result is asked for, and of the one begun next.

        Each process gets its jobs in order: what it learns from one holds for later ones.
        """
        self._threads = ThreadPoolExecutor(max(size, 1), thread_name_prefix="logmfu-crew")
        try:
            for _ in range(size):
                self._all.append(_start())
        except OSError:
            return  # no more processes: those there are do
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            process.kill()
        self._idle.put(None)
        with self._room:
            self._wanted = -1
            self._room.notify_all()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._all:
            for stream in (process.stdin, process.stdout):
                if stream:
                    _close(stream)
            process.wait()

    def results(self, plan: Plan, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]] | None:
        """The results of jobs in their order; the first ones are begun at once, and always a few ahead.

        None without processes, and for a plan that cannot be handed to them.
        """
        if not self._all:
            return None
        try:
            start = pickle.dumps(plan, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, AttributeError, TypeError):
            return None  # a parser with functions made on the spot
        try:
            for process in self._all:
                self._threads.submit(self._ready, process, start)
        except RuntimeError:
            return None  # no more threads
        left = enumerate(jobs)
        begun = deque(self._begin(number, job) for number, job in islice(left, AHEAD))
        return self._results(plan, left, begun)

    def _results(
        self, plan: Plan, left: Iterator[tuple[int, Job]], begun: deque[_Begun]
    ) -> Iterator[tuple[Job, Result]]:
        from logmfu.bulk.job import Hand

        hand: Hand | None = None
        for wanted in count():
            if not begun:
                return
            job, future = begun.popleft()
            with self._room:
                self._wanted = wanted
                self._room.notify_all()
            result = None if self._take_back(future, wanted) else future.result()
            if result is None:  # nobody has begun it, or its process died: done here instead of waiting
                hand = hand or Hand(plan)
                result = hand.do(job)
            else:
                with self._room:
                    self._held -= result.size
            yield job, result
            begun.extend(self._begin(number, job) for number, job in islice(left, 1))

    def _take_back(self, future: Future[Result | None], number: int) -> bool:
        """Whether a job was not begun, and is not any more."""
        if not future.cancel():
            return False
        self._turn_to(number + 1)
        return True

    def _turn_to(self, number: int) -> None:
        with self._room:
            self._turn = max(self._turn, number)
            self._room.notify_all()

    def _begin(self, number: int, job: Job) -> _Begun:
        return job, self._threads.submit(self._send, number, job)

    def _ready(self, process: subprocess.Popen[bytes], plan: bytes) -> None:
        """Wait for a process that is given its plan."""
        if _prepared(process, plan):
            self._idle.put(process)
        else:
            self._give_up(process)

    def _send(self, number: int, job: Job) -> Result | None:
        """The result of a process; None if it died, or there is none any more."""
        with self._room:
            self._room.wait_for(
                lambda: self._wanted in (number, -1) or (self._turn == number and self._held < HELD)
            )
        process = self._idle.get()
        self._turn_to(number + 1)
        if process is None:
            self._idle.put(None)
            return None
        try:
            if process.stdin is None or process.stdout is None:
                return None
            pickle.dump(job, process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            result: Result = pickle.load(process.stdout)  # noqa: S301 - both ends of the pipe are ours
        except (OSError, EOFError, pickle.PickleError, ValueError, AttributeError, ImportError, IndexError):
            self._give_up(process)
            return None
        self._idle.put(process)
        with self._room:
            self._held += result.size
        return result

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        """Do without a process."""
        process.kill()
        self._lost.append(process)
        if len(self._lost) == len(self._all):
            self._idle.put(None)


def _prepared(process: subprocess.Popen[bytes], plan: bytes) -> bool:
    """Give the plan to a process; True when it has loaded everything, False when it ends instead."""
    if process.stdin is None or process.stdout is None:
        return False
    try:
        process.stdin.write(plan)
        process.stdin.flush()
        # Before its word that it is ready, hooks of the interpreter may have printed something.
        return any(line.endswith(READY) for line in process.stdout)
    except (OSError, ValueError):
        return False


def crew(sources: Sequence[Source]) -> Crew:
    """As many processes as the inputs are worth, perhaps none."""
    return Crew(hands(sources))


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "logmfu.bulk.worker"],  # nothing is loaded from where the user stands
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what fails there is done again here, and fails in sight
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",
        },
    )


def _close(stream: object) -> None:
    try:
        stream.close()  # type: ignore[attr-defined]
    except OSError:
        return  # what was still to be written went nowhere, because its reader was ended

"""Processes that read ranges of files side by side.

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
from itertools import islice
from queue import SimpleQueue
from types import TracebackType

from logmfu.bulk.job import Hand, Job, Result
from logmfu.parsing import Block, Rule
from logmfu.source import Source

JOB = 32 << 20
"""Bytes of a range."""
WORTH = 192 << 20
"""Bytes below which more processes do not pay for their start."""
MOST = 16
"""Processes at most: beyond that, memory and disk are the limit."""
_Begun = tuple[Job, Future["Result | None"]]
Rules = tuple[Sequence[Rule | Block], frozenset[str]]


def hands(sources: Sequence[Source]) -> int:
    """How many processes beside this one the inputs are worth; 0 for none."""
    plain = sum(source.size or 0 for source in sources if source.splittable)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if plain < WORTH or cores < 2 or not sys.executable:
        return 0
    return min(cores, MOST, plain // (WORTH // 2))


def ranges(source: Source) -> list[tuple[int, int]]:
    """The ranges a file is read in."""
    size = source.size or 0
    return [(start, min(start + JOB, size)) for start in range(0, size, JOB)]


class Crew:
    """Some processes, and the jobs they have. This process does those they have not begun or died of."""

    def __init__(self, count: int, rules: Rules) -> None:
        self._rules = rules
        self._count = count
        start = pickle.dumps(rules, protocol=pickle.HIGHEST_PROTOCOL)
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._all = [_start(start) for _ in range(count)]
        for process in self._all:
            self._idle.put(process)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="logmfu-crew")
        self._hand: Hand | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._all:
            for stream in (process.stdin, process.stdout):
                if stream:
                    _close(stream)
            process.wait()

    def results(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """The results of jobs in their order; the first ones are begun at once, and always a few ahead."""
        left = iter(jobs)
        begun = deque(self._begin(job) for job in islice(left, self._count + 2))
        return self._results(left, begun)

    def _results(self, left: Iterator[Job], begun: deque[_Begun]) -> Iterator[tuple[Job, Result]]:
        while begun:
            yield self._finished(*begun.popleft())
            begun.extend(self._begin(job) for job in islice(left, 1))

    def _begin(self, job: Job) -> _Begun:
        return job, self._threads.submit(self._send, job)

    def _finished(self, job: Job, future: Future[Result | None]) -> tuple[Job, Result]:
        """The result; a job that nobody has begun is done here instead of waiting for it."""
        result = None if future.cancel() else future.result()
        if result is None:
            self._hand = self._hand or Hand(*self._rules)
            result = self._hand.do(job)
        return job, result

    def _send(self, job: Job) -> Result | None:
        """The result of a process; None if it died."""
        process = self._idle.get()
        try:
            if process.stdin is None or process.stdout is None:
                return None
            pickle.dump(job, process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
            result: Result = pickle.load(process.stdout)  # noqa: S301 - both ends of the pipe are ours
        except (OSError, EOFError, pickle.UnpicklingError, ValueError):
            return None
        finally:
            self._idle.put(process)
        return result


def crew(count: int, rules: Rules) -> Crew | None:
    """A crew, if the rules can be handed to other processes."""
    try:
        return Crew(count, rules)
    except (pickle.PicklingError, AttributeError, TypeError, OSError):
        return None  # a parser with functions made on the spot, or no more processes


def _start(rules: bytes) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "logmfu.bulk.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what fails there is done again here, and fails in sight
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "OPENBLAS_NUM_THREADS": "1",
        },
    )
    if process.stdin:
        process.stdin.write(rules)
        process.stdin.flush()
    return process


def _close(stream: object) -> None:
    try:
        stream.close()  # type: ignore[attr-defined]
    except OSError:
        return  # what was still to be written went nowhere, because its reader was ended

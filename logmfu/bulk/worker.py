"""``python -m logmfu.bulk.worker``: does jobs that come in by standard input until it ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys


def main() -> None:
    """Read the plan, then jobs; write a result for each. An error ends the process: the job is done elsewhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed goes elsewhere
    from logmfu.bulk.crew import READY
    from logmfu.bulk.job import Hand

    results.write(READY)
    results.flush()
    jobs = sys.stdin.buffer
    hand = Hand(pickle.load(jobs))  # noqa: S301 - both ends of the pipe are ours
    while True:
        try:
            job = pickle.load(jobs)  # noqa: S301 - both ends of the pipe are ours
        except EOFError:
            return
        try:
            pickle.dump(hand.do(job), results, protocol=pickle.HIGHEST_PROTOCOL)
            results.flush()
        except BrokenPipeError:  # the one who asked is gone
            os._exit(1)  # without another try to write what is left


if __name__ == "__main__":
    main()

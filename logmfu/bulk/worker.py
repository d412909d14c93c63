"""``python -m logmfu.bulk.worker``: does jobs that come in by standard input until it ends."""

from __future__ import annotations

import pickle
import signal
import sys


def main() -> None:
    """Read the rules, then jobs; write a result for each, or the error that came instead of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    from logmfu.bulk.job import Hand

    jobs, results = sys.stdin.buffer, sys.stdout.buffer
    hand = Hand(*pickle.load(jobs))  # noqa: S301 - both ends of the pipe are ours
    while True:
        try:
            job = pickle.load(jobs)  # noqa: S301 - both ends of the pipe are ours
        except EOFError:
            return
        pickle.dump(hand.do(job), results, protocol=pickle.HIGHEST_PROTOCOL)
        results.flush()


if __name__ == "__main__":
    main()

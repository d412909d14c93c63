"""Collective communication: watchdogs, stores, broken connections.

Layouts: PyTorch ProcessGroupNCCL.cpp and TCPStore.cpp of 1.x to 2.9, NCCL debug.cc.
"""

from __future__ import annotations

from logmfu.failures.reading import FIELDS, SYMPTOM, TEARDOWN
from logmfu.parsing import Rule, Sample

_RANK = r"(?:\bRank (?P<rank>\d++)\]\s*+)?+"
_WORK = (
    r"Watchdog caught collective operation timeout: \w++\((?:SeqNum=(?P<seq>\d++), )?+(?:OpType=(?P<op>\w++))?+"
    r"(?:[^()]++|\(ms\)(?:=(?P<timeout_ms>\d++))?+)*+\)? ran for (?P<ran_for_ms>\d++) milliseconds"
)

RULES: tuple[Rule, ...] = (
    Rule(
        name="collective_timeout",
        kind="event",
        event="nccl_timeout",
        needle="Watchdog caught collective operation timeout",
        pattern=_RANK + r"(?<!with exception: (?:\[Rank \d{1,7}\] ?)?)" + _WORK,
        fields=FIELDS,
        constants=SYMPTOM,
        ignore="with exception: ",
        samples=(
            Sample(
                "[rank6]:[E218 11:00:01.000000001 ProcessGroupNCCL.cpp:632] [Rank 6] Watchdog caught collective operation timeout: "
                "WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.",
                {
                    "rank": 6,
                    "seq": 77,
                    "op": "ALLREDUCE",
                    "timeout_s": 600.0,
                    "ran_for_s": 600.02,
                    "role": "symptom",
                },
            ),
            Sample(
                "[E ProcessGroupNCCL.cpp:475] [Rank 2] Watchdog caught collective operation timeout: "
                "WorkNCCL(OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800500 milliseconds before timing out.",
                {"rank": 2, "op": "BROADCAST", "timeout_s": 1800.0, "ran_for_s": 1800.5},
            ),
        ),
    ),
    Rule(
        name="watchdog_ended",
        kind="event",
        event="nccl_error",
        needle="watchdog thread terminated with exception",
        pattern=_RANK
        + r"(?:\w{1,40} ){0,3}watchdog thread terminated with exception: (?:\[Rank \d++\] ?)?+(?P<reason>[^\n]{0,200})",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(
            Sample(
                "[rank6]:[E218 11:00:02.000000001 ProcessGroupNCCL.cpp:1901] [PG ID 0 PG GUID 0(default_pg) Rank 6] "
                "Process group watchdog thread terminated with exception: [Rank 6] Watchdog caught collective operation timeout: "
                "WorkNCCL(SeqNum=77, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.",
                {"rank": 6, "role": "teardown"},
            ),
        ),
    ),
    Rule(
        name="watchdog_failure",
        kind="event",
        event="nccl_error",
        needle="detected by watchdog at work",
        pattern=_RANK + r"\w+ detected by watchdog at work[\w ]{0,40}: (?P<seq>\d++)[ ,\w]{0,40}?:?"
        r" last enqueued (?:NCCL )?work: (?P<last_enqueued>-?\d++), last completed (?:NCCL )?work: (?P<last_completed>-?\d++)",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "[PG ID 2 PG GUID 5(tp) Rank 9]  failure detected by watchdog at work sequence id: 50 PG status: "
                "last enqueued work: 52, last completed work: 49",
                {"rank": 9, "seq": 50, "last_enqueued": 52, "last_completed": 49},
            ),
            Sample(
                "[Rank 4] Exception detected by watchdog at work: 8, last enqueued NCCL work: 9, last completed NCCL work: 7.",
                {"rank": 4, "seq": 8, "last_enqueued": 9, "last_completed": 7},
            ),
        ),
    ),
    Rule(
        name="process_taken_down",
        kind="event",
        event="terminating",
        needle="taking the entire process down",
        pattern=_RANK + r"[^\[\]]{0,80}?taking the entire process down",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(
            Sample(
                "[Rank 6] To avoid data inconsistency, we are taking the entire process down.",
                {"rank": 6, "role": "teardown"},
            ),
        ),
    ),
    Rule(
        name="heartbeat_monitor",
        kind="event",
        event="heartbeat_timeout",
        needle="Heartbeat monitor timed out",
        pattern=_RANK + r"Heartbeat monitor timed out",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "[PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info.",
                {"rank": 1},
            ),
        ),
    ),
    Rule(
        name="watchdog_stuck",
        kind="event",
        event="heartbeat_timeout",
        needle="watchdog got stuck for",
        pattern=_RANK + r"[\w']{0,40} ?watchdog got stuck for (?P<timeout_s>\d++) seconds",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "[PG 0 Rank 1] [PG 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress.",
                {"rank": 1, "timeout_s": 480.0},
            ),
        ),
    ),
    Rule(
        name="library_error",
        kind="event",
        event="nccl_error",
        needle="CCL error",
        pattern=r"[NRHM]CCL error (?:in:|\d++|at) ?(?P<reason>[^\n]{1,200})",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "torch.distributed.DistBackendError: NCCL error in: /src/NCCLUtils.hpp:77, remote process exited or there was a network error",
                {
                    "reason": "/src/NCCLUtils.hpp:77, remote process exited or there was a network error",
                    "role": "symptom",
                },
            ),
        ),
    ),
    Rule(
        name="communicator_aborted",
        kind="event",
        event="nccl_error",
        needle="communicator was aborted",
        pattern=r"communicator was aborted(?: on rank (?P<rank>\d++))?+",
        fields=FIELDS,
        constants=TEARDOWN,
        samples=(
            Sample(
                "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 5.",
                {"rank": 5, "role": "teardown"},
            ),
            Sample("RuntimeError: NCCL communicator was aborted.", {"role": "teardown"}),
        ),
    ),
    Rule(
        name="library_warning",
        kind="event",
        event="nccl_error",
        needle=" NCCL WARN ",
        pattern=r"(?:(?P<host>[\w.-]{1,253}+):(?P<pid>\d{1,9}):\d{1,9} \[\d{1,4}\] (?:\S{1,300}+ )?+)?+NCCL WARN "
        r"(?P<reason>(?:(?!NCCL WARN)[^\n]){0,160}?(?:with status=|with error|Cuda failure|closed by remote peer|async fatal event|async event : |"
        r"Call to \w+ failed|timed out|unhandled)[^\n]{0,160})",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "gpu-9:800:815 [2] transport/net_ib.cc:90 NCCL WARN NET/IB: Got completion from peer 10.0.0.9<1> with status=12",
                {
                    "host": "gpu-9",
                    "pid": 800,
                    "reason": "NET/IB: Got completion from peer 10.0.0.9<1> with status=12",
                },
            ),
        ),
    ),
    Rule(
        name="connection_closed",
        kind="event",
        event="connection_lost",
        needle="Connection closed by ",
        pattern=r"Connection closed by (?:remote )?peer(?: \[(?P<peer>[^\[\]]{1,80}\]?:?\d*+))?+",
        fields=FIELDS,
        constants=TEARDOWN,
        quiet=True,
        samples=(
            Sample(
                "RuntimeError: [/src/gloo/transport/tcp/pair.cc:500] Connection closed by peer [10.0.0.9]:4100",
                {"peer": "10.0.0.9]:4100", "role": "teardown"},
            ),
        ),
    ),
    Rule(
        name="connection_reset",
        kind="event",
        event="connection_lost",
        needle="Connection reset by peer",
        pattern=r"Connection reset by peer",
        constants=TEARDOWN,
        samples=(
            Sample("ConnectionResetError: [Errno 104] Connection reset by peer", {"role": "teardown"}),
        ),
    ),
    Rule(
        name="broken_pipe",
        kind="event",
        event="connection_lost",
        needle="Broken pipe",
        pattern=r"Broken pipe",
        constants=TEARDOWN,
        samples=(
            Sample("BrokenPipeError: [Errno 32] Broken pipe", {"role": "teardown"}),
            Sample("client_loop: send disconnect: Broken pipe"),
        ),
    ),
    Rule(
        name="store_read_failed",
        kind="event",
        event="connection_lost",
        needle="recvValue failed",
        pattern=r"recvValue failed on SocketImpl\((?P<peer>[^()]{0,200})",
        fields=FIELDS,
        constants=TEARDOWN,
        quiet=True,
        samples=(
            Sample(
                "[c10d] recvValue failed on SocketImpl(fd=71, addr=[gpu-9]:41000, remote=[gpu-8]:29500): failed to recv, got 0 bytes",
                {"peer": "fd=71, addr=[gpu-9]:41000, remote=[gpu-8]:29500", "role": "teardown"},
            ),
        ),
    ),
    Rule(
        name="clients_missing",
        kind="event",
        event="store_timeout",
        needle="seconds waiting for clients",
        pattern=r"Timed out after (?P<timeout_s>\d++) seconds waiting for clients\.?"
        r"(?: (?P<joined>\d++)/(?P<expected>\d++) clients joined)?+",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 15/16 clients joined.",
                {"timeout_s": 301.0, "joined": 15, "expected": 16},
            ),
        ),
    ),
    Rule(
        name="store_unreachable",
        kind="event",
        event="store_timeout",
        needle="client socket has timed out after",
        pattern=r"client socket has timed out after (?P<timeout_ms>\d++)ms(?: while trying to connect to \((?P<peer>[^()]{1,200}))?+",
        fields=FIELDS,
        constants=SYMPTOM,
        samples=(
            Sample(
                "[c10d] The client socket has timed out after 300000ms while trying to connect to (10.0.0.8, 29500).",
                {"timeout_s": 300.0, "peer": "10.0.0.8, 29500"},
            ),
        ),
    ),
    Rule(
        name="store_wait",
        kind="event",
        event="store_timeout",
        needle="wait timeout after",
        pattern=r"wait timeout after (?P<timeout_ms>\d++)ms",
        fields=FIELDS,
        constants=SYMPTOM,
        quiet=True,
        samples=(
            Sample(
                "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /worker/3",
                {"timeout_s": 600.0},
            ),
        ),
    ),
    Rule(
        name="rendezvous",
        kind="event",
        event="store_timeout",
        needle="RendezvousTimeoutError",
        pattern=r"^\s*+(?:\w++\.)*+RendezvousTimeoutError",
        constants=SYMPTOM,
        quiet=True,
        samples=(Sample("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"),),
    ),
)

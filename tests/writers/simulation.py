"""A simulated clock runs through a plan; out come the moments to print about and what really happened."""

from __future__ import annotations

import math
from random import Random

from writers.layout import Layout, Moment, Row
from writers.plan import Collect, DataWait, Drift, Eval, Failure, NanLoss, Plan, Save, Skip, Slow
from writers.raw import Interval, RawAttempt, RawStall
from writers.truth import Span


class Simulation:
    """One run, second by second."""

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self.plan, self.layout = plan, layout
        self.random = Random(plan.seed)  # noqa: S311
        self.t = plan.began
        self.moments: list[Moment] = []
        self.spans: list[Span] = []
        self.stalls: list[RawStall] = []
        self.attempts: list[RawAttempt] = []
        self.saves: list[list] = []
        self.evals: list[tuple[int, int]] = []
        self.durable = 0
        self.pending: tuple[int, float, int] | None = None
        self.waits = {event.step: event for event in plan.all(DataWait)}
        self.slow_stalls: dict[tuple[int, int], int] = {}
        self.consumed = plan.consumed()
        self.slows, self.drift, self.collects = plan.all(Slow), plan.one(Drift), plan.all(Collect)
        self.skips = {event.step for event in plan.all(Skip)}
        self.nan = plan.one(NanLoss)

    def run(self) -> Simulation:
        """Every attempt, until one finishes or the last failure is not followed by a restart."""
        for number, failure in enumerate([*self.plan.all(Failure), None], 1):
            self.attempt = RawAttempt(number, self.durable + 1, failure=failure)
            self.attempts.append(self.attempt)
            self._live()
            self.attempt.durable = self.durable
            if failure is None or failure.restart_after is None:
                break
            self.spend("restart_gap", failure.restart_after)
        return self

    def spend(
        self,
        kind: str,
        seconds: float,
        accept: frozenset[str] | None = None,
        *,
        step: int | None = None,
        stall: int | None = None,
    ) -> None:
        """Let the clock run and note what for."""
        accept = accept or frozenset({kind})
        self.spans.append(Span(self.t, self.t + seconds, kind, accept, self.attempt.number, step, stall))
        self.t += seconds

    def say(self, name: str, step: int = 0, **details) -> None:
        """Note a moment the framework prints about."""
        self.moments.append(Moment(name, self.t, self.attempt.number, step, **details))

    def _live(self) -> None:
        failure = self.attempt.failure
        self._start_up()
        for step in range(self.durable + 1, self.plan.steps + 1):
            if failure is not None and step > failure.at_step:
                self._step_cut_off(failure, step)
                return
            self._step(step)
            if self._pauses(step, failure):
                return
        self._finalise(self.plan.steps, now=True)
        self.say("finished", self.plan.steps)

    def _start_up(self) -> None:
        plan = self.plan
        self.say("process")
        self.spend("startup", plan.initialise)
        self.say("initialized")
        if self.durable:
            self.say("load_start", self.durable)
            self.spend("restore", plan.restore)
            self.say("load_end", self.durable, seconds=plan.restore)
        else:
            self.say("load_none")
        self.spend("startup", plan.build, self._first_names("startup"))
        self.say("built")
        self.spend("startup", plan.load_data, self._first_names("startup"))
        self.say("training", self.durable)
        self.attempt.training = self.t
        self.interval = Interval()
        self.own: list[float] = []
        self.own_sum = 0.0

    def _first_names(self, kind: str) -> frozenset[str]:
        """Start-up and warm-up are one thing where no line stands between them."""
        return frozenset({kind} if self.layout.start_line else {"startup", "warmup"})

    def _step(self, step: int) -> None:
        """One step that is completed: its time, its surprises, its line."""
        self._finalise(step)
        begin = self.t
        wait = self._wait(step)
        in_step = self.t if not self.layout.wait_in_step else begin
        self._work(step)
        self._collect(step)
        self.own.append(self.t - begin - wait)
        self.own_sum += self.own[-1]
        self._count(step, self.t - in_step, wait)
        self.attempt.last_done = step
        first = step == self.attempt.first_step
        if step % self.plan.log_interval == 0:
            self._print(step)
            self.interval = Interval()
            if first and self.layout.first_line:
                self.interval = self._kept(step)
        elif first and self.layout.first_line:
            self._print(step)

    def _kept(self, step: int) -> Interval:
        """The first line of a process does not reset what is added up."""
        return Interval(
            busy=self.own[0], count=1, skipped=int(self._skips(step)), nan=int(self._is_nan(step))
        )

    def _work(self, step: int) -> None:
        """The step itself: pace, noise, outlier, slowness, warm-up."""
        plan = self.plan
        base = plan.step_time * self._batch(step) / plan.batch
        pace = base * (1 + plan.noise * max(-4.0, min(4.0, self.random.gauss(0, 1))))
        chance, size = self.random.random(), self.random.random()
        self.spend("productive", pace, step=step)
        if chance < plan.outliers:
            noise = frozenset({"productive", "slow_steps"})
            self.spend("productive", base * plan.outlier_size * size, noise, step=step)
        for slow in self.slows:
            self._slow(slow, step, pace)
        drift = self.drift
        if drift is not None and step >= drift.first:
            share = (step - drift.first + 1) / (plan.steps - drift.first + 1)
            either = frozenset({"productive", "slow_steps"})
            self.spend("productive", pace * (drift.factor - 1) * share, either, step=step)
        if step == self.attempt.first_step:
            self.spend("warmup", plan.warmup, self._first_names("warmup"), step=step)

    def _slow(self, slow: Slow, step: int, pace: float) -> None:
        if not slow.first <= step <= (slow.last or self.plan.steps):
            return
        excess = pace * (slow.factor - 1)
        if slow.last is None:
            # The pace of a new regime is the run's own pace from there on.
            self.spend("productive", excess, frozenset({"productive", "slow_steps"}), step=step)
            return
        key = (self.attempt.number, slow.first)
        if key not in self.slow_stalls:
            self.slow_stalls[key] = self._plant("slow_steps", step, 0.0, in_step=True)
        stall = self.stalls[self.slow_stalls[key]]
        stall.step = step
        stall.seconds += excess
        self.spend("slow_steps", excess, step=step, stall=self.slow_stalls[key])

    def _wait(self, step: int) -> float:
        event = self.waits.pop(step, None)
        if event is None:
            return 0.0
        shown = self.plan.timers and self.layout.has_timers
        accept = frozenset({"data_wait"} if shown else {"slow_steps", "unknown"})
        stall = self._plant(
            "data_wait", step, event.seconds, accept, in_step=self.layout.wait_in_step, measured=shown
        )
        if not self.layout.wait_in_step:
            self.stalls[stall].step = step - 1
        kind = "data_wait" if shown else "slow_steps" if self.layout.wait_in_step else "unknown"
        self.spend(kind, event.seconds, accept, step=step, stall=stall)
        return event.seconds

    def _collect(self, step: int) -> None:
        for event in self.collects:
            if step % event.every == 0:
                accept = self._collect_names(event)
                kind = "gc" if accept == {"gc"} else "slow_steps"
                stall = self._plant("gc", step, event.seconds, accept, in_step=True)
                self.spend(kind, event.seconds, accept, step=step, stall=stall)

    def _collect_names(self, event: Collect) -> frozenset[str]:
        """Only a period seen often enough, and that is not also another one's, points at collections."""
        plan = self.plan
        others = [other.every for kind in (Save, Eval) for other in plan.all(kind)]
        clear = event.every % plan.log_interval == 0 and event.every >= 5 * plan.log_interval
        seen = plan.steps // event.every >= 6
        apart = not any(event.every % other == 0 or other % event.every == 0 for other in others)
        return frozenset({"gc"} if clear and seen and apart else {"gc", "slow_steps", "unknown"})

    def _plant(
        self,
        kind: str,
        step: int,
        seconds: float,
        accept: frozenset[str] | None = None,
        *,
        in_step: bool = False,
        measured: bool = False,
    ) -> int:
        accept = accept or frozenset({kind})
        stall = RawStall(kind, step, step, self.t, seconds, self.attempt.number, in_step, measured, accept)
        self.stalls.append(stall)
        return len(self.stalls) - 1

    def _pauses(self, step: int, failure: Failure | None) -> bool:
        """Evaluation, then the save, as the training loops have it; true if the attempt ended in the save."""
        for event in self.plan.all(Eval):
            if step % event.every == 0:
                self.say("eval_start", step)
                self._pause("evaluation", step, event.seconds)
                self.evals.append((self.attempt.number, step))
                self.say("eval_end", step, seconds=event.seconds)
        return any(
            self._save(event, step, failure) for event in self.plan.all(Save) if step % event.every == 0
        )

    def _pause(self, kind: str, step: int, seconds: float) -> None:
        """A pause between two steps: what names it and what measures it depends on the layout."""
        layout = self.layout
        accept = frozenset({kind})
        best = kind
        if kind not in layout.names:
            best = "slow_steps" if layout.includes_pauses else "unknown"
            accept = frozenset({"slow_steps", "unknown"}) | ({kind} & layout.periods)
        stall = self._plant(kind, step, seconds, accept, measured=kind in layout.measures)
        self.spend(best, seconds, accept, stall=stall)
        self.interval.paused += seconds

    def _save(self, event: Save, step: int, failure: Failure | None) -> bool:
        self._finalise(step, now=True)
        record = [self.attempt.number, step, False]
        self.saves.append(record)
        self.say("save_start", step)
        if failure is not None and failure.in_save and step == failure.at_step:
            self._pause("checkpoint", step, event.seconds / 2)
            self.stalls[-1].measured = False
            self._fail(failure, step)
            return True
        self._pause("checkpoint", step, event.seconds)
        if event.asynchronous:
            self.say("save_scheduled", step, seconds=event.seconds)
            self.pending = (step, self.t + event.writes_for, len(self.saves) - 1)
        else:
            record[2] = True
            self.durable = step
            self.say("save_end", step, seconds=event.seconds)
        return False

    def _finalise(self, step: int, *, now: bool = False) -> None:
        """An asynchronous save becomes durable when the loop sees that it is written, or has to wait for it."""
        if self.pending is None or (self.pending[1] > self.t and not now):
            return
        saved, _, index = self.pending
        self.durable, self.pending = saved, None
        self.saves[index][2] = True
        self.say("save_done", saved)

    def _count(self, step: int, busy: float, wait: float) -> None:
        interval = self.interval
        interval.busy += busy
        interval.wait += wait
        interval.count += 1
        interval.skipped += self._skips(step)
        interval.nan += self._is_nan(step)

    def _skips(self, step: int) -> bool:
        return step in self.skips

    def _batch(self, step: int) -> int:
        return self.consumed[step] - self.consumed[step - 1]

    def _is_nan(self, step: int) -> bool:
        return self.nan is not None and step >= self.nan.step

    def _print(self, step: int) -> None:
        interval, plan = self.interval, self.plan
        seconds = interval.busy + (interval.paused if self.layout.includes_pauses else 0.0)
        # Wobble of the loss comes from the step number: a step done again has the same loss.
        loss = 2.0 + 8.0 * math.exp(-step / 400) + 0.02 * math.sin(step * 0.7)
        later = len(self.own) - 2
        row = Row(
            step=step,
            mean=seconds / (plan.log_interval if self.layout.per_interval else interval.count),
            busy=interval.busy,
            covered=interval.count,
            batch=self._batch(step),
            consumed=self.consumed[step],
            loss=None if self._is_nan(step) else loss,
            skipped=interval.skipped,
            nan=interval.nan,
            wait=interval.wait,
            last=self.own[-1],
            own_step=len(self.own),
            own_mean=(self.own_sum - sum(self.own[:2])) / later if later > 0 else self.own[-1],
        )
        self.attempt.printed.append(step)
        self.say("step", step, row=row)

    def _step_cut_off(self, failure: Failure, step: int) -> None:
        """The failure comes inside a step: its time is lost, or the log cannot tell."""
        self._finalise(step)
        self.spend("lost_work", failure.fraction * self.plan.step_time, step=step)
        self._fail(failure, step - 1)

    def _fail(self, failure: Failure, step: int) -> None:
        self.pending = None
        if failure.kind == "hang":
            self._plant("hang", step, failure.ran_for, measured=True)
            self.spend("hang", failure.ran_for, stall=len(self.stalls) - 1)
        if failure.kind == "silent":
            return
        self.say("failure", step, kind=failure.kind, seconds=failure.ran_for)
        if self.plan.launcher:
            self.spend("unknown", 1.5, frozenset({"unknown", "hang", "restart_gap", "lost_work"}))
            self.say("launcher", step, kind=failure.kind)

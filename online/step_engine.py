"""The step engine: vLLM's scheduling rules without a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from online import step_kernels as k
from online.last_decision import LastDecision
from online.prefix_cache import PrefixCache
from online.prompt_chains import PromptChains
from online.rules import rules_array
from online.state import NOTHING
from sortedf.errors import OversizeError
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from online.hint_trust import HintTrust
    from online.predictors import Predictor
    from online.requests import RequestTable
    from online.state import Decision, Policy
    from sortedf.engine_model import EngineModel

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StepRecord:
    """The events of one step; the same for a simulated and a real engine.

    Attributes
    ----------
    step : int
        Number of the step, from 1; steps without any event are not counted.
    started, finished, preempted, evicted : sequences of int
        Ids that started (again), completed, lost their KV because memory ran out, and
        lost it by a decision of the policy.
    resumed : sequence of (int, int)
        Ids that make a token in this step and made none in the step before, with the
        step of their last token, -1 if this is the first.
    num_running, num_waiting : int
        Requests served in the step, and requests waiting after it.
    prefill_tokens : int
        Tokens processed of prompts, and of answers that are computed again.
    num_decoding : int
        Requests that decode: each processes one token, its newest.
    output_tokens : int
        Tokens of answers that the step produces.
    cached_tokens : int
        Tokens of the started requests whose KV was found in the cache.
    kv_tokens, used_blocks : int
        KV in the step before the finished ones left: tokens and blocks.
    wake_s : float, optional
        Time of the policy's next decision, if it starts nothing until then.
    """

    step: int
    started: Sequence[int]
    finished: Sequence[int]
    preempted: Sequence[int]
    evicted: Sequence[int]
    resumed: Sequence[tuple[int, int]]
    num_running: int
    num_waiting: int
    prefill_tokens: int
    num_decoding: int
    output_tokens: int
    kv_tokens: int
    used_blocks: int
    cached_tokens: int = 0
    wake_s: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened, so that the step is not counted."""
        return self.num_running == 0 and not self.evicted


class Engine(Protocol):
    """Interface of an engine, simulated or real, for a driver."""

    table: RequestTable
    rules: EngineModel

    def add(self, i: int) -> None:
        """Add request `i` of the table; OversizeError if it can never run."""
        ...

    def cancel(self, i: int) -> None:
        """Cancel request `i`, waiting or running."""
        ...

    @property
    def num_unfinished(self) -> int:
        """Number of waiting and running requests."""
        ...

    def step(self, now_s: float) -> StepRecord:
        """Run one step that begins at `now_s`."""
        ...


class StepEngine:
    """An engine that follows vLLM's rules step by step, without a model.

    Parameters
    ----------
    table : RequestTable
        The requests, known ones and those to come. Without chains, and with prefix
        caching, a preempted request finds only its own blocks in the cache.
    rules : EngineModel
    policy : Policy
    step_time : StepTime
        For policies that count service in seconds.
    predictor : Predictor, optional
        Predicts each request's answer length when it arrives, instead of the table's
        prediction, and learns from completed requests.
    trust : HintTrust, optional
        Replaces the table's predictions and scores, which are hints of clients, when a
        request arrives; raises predictions that are outlived.
    clients : sequence of hashable, optional
        Client of each request; all are of one if left out.
    always_ask : bool
        Call the policy before every step, even if its last decision still stands.
    """

    def __init__(
        self,
        table: RequestTable,
        rules: EngineModel,
        policy: Policy,
        step_time: StepTime = UNIT_STEPS,
        *,
        predictor: Predictor | None = None,
        trust: HintTrust | None = None,
        clients: Sequence[Hashable] | None = None,
        always_ask: bool = False,
    ) -> None:
        self.table = table
        self.rules = rules
        self.policy = policy
        self.step_time = step_time
        self.predictor = predictor
        self.trust = trust
        self.always_ask = always_ask
        self._clients = clients
        self.num_steps = 0
        self._rules = rules_array(rules)
        self._waiting: dict[int, None] = {}
        self._last = LastDecision(rules, step_time)
        room = min(rules.seqs_cap, rules.num_blocks) + 1
        self._running: Ints = np.zeros(room, dtype=np.int64)
        self._buffers = tuple(np.zeros(room, dtype=np.int64) for _ in range(5))
        self._out: Ints = np.zeros(k.NUM_RESULTS, dtype=np.int64)
        self._out[k.FREE] = rules.num_blocks
        self._cache = _cache_of(table, rules) if rules.prefix_caching else None
        self._pool = k.no_pool() if self._cache is None else self._cache.pool

    @property
    def num_unfinished(self) -> int:
        """Number of waiting and running requests."""
        return len(self._waiting) + int(self._out[k.RUNNING])

    def add(self, i: int) -> None:
        """Let request `i` of the table wait; OversizeError if it can never run."""
        prefill, decode = self.table.ints[[k.PREFILL, k.DECODE], i].tolist()
        reason = self.rules.refusal(prefill, decode)
        if reason is not None:
            raise OversizeError(f"request {i} {reason}.", (i,))
        self._predict(i)
        self._correct(i)
        self._waiting[i] = None
        self._last.joined.append(i)

    def cancel(self, i: int) -> None:
        """Cancel request `i`, waiting or running; others are ignored."""
        is_here = i in self._waiting or i in self._now_running()
        if self.trust is not None and is_here:
            self.trust.ended(i, None)
        if i in self._waiting:
            del self._waiting[i]
            self._last.left.append(i)
            self._last.ended.append(i)
            if self._cache is not None:
                self._cache.forest.stop(i)
        elif i in self._now_running():
            self._stop_running([i])
            self._last.ended.append(i)

    def update_hint(
        self, i: int, *, predicted: int | None = None, score: float | None = None
    ) -> None:
        """Change the predicted length or the score of request `i`."""
        is_here = i in self._waiting or i in self._now_running()
        if self.table.update_hint(i, predicted, score) and is_here:
            self._last.changed.append(i)

    def step(self, now_s: float) -> StepRecord:
        """Run one step that begins at `now_s`."""
        decision = self._decide(now_s)
        self._apply(decision)
        self.num_steps += 1
        scheduled, finished, preempted, resumed, after = self._buffers
        offered = np.array(decision.start, dtype=np.int64)
        before = int(self._out[k.RUNNING])
        # The limit on long prompts is used only if there are other requests.
        others = self.num_unfinished > 1
        self._rules[k.THRESHOLD] = self.rules.long_prefill_token_threshold * others
        cache = self._cache
        before_start = [] if cache is None else cache.before_start(decision.start)
        k.step_once(
            self.table.ints, self._running, offered, self._rules, self._pool,
            self.num_steps, scheduled, finished, preempted, resumed, after, self._out,
        )  # fmt: skip
        out = self._out.tolist()
        done = finished[: out[k.FINISHED]].tolist()
        self._last.ended += done
        if not out[k.SCHEDULED] and not decision.evict:
            self.num_steps -= 1
        started = decision.start[: out[k.STARTED]]
        lost = preempted[: out[k.PREEMPTED]].tolist()
        if cache is not None:
            cache.follow(lost, before_start[: len(started)], done)
        self._move(started, lost)
        if self.predictor is not None and done:
            self.predictor.observe(self.table.ints[k.OUTPUT_TOKENS, done].tolist())
        if self.trust is not None:
            for i in done:
                self.trust.ended(i, int(self.table.ints[k.OUTPUT_TOKENS, i]))
        self._last.after_step(
            all_decoded=not started and out[k.NUM_DECODING] == before,
            all_made=out[k.NEW_OUTPUT] == out[k.SCHEDULED] == out[k.RUNNING],
            as_decided=len(started) == len(decision.start)
            and not (lost or decision.evict),
        )
        return StepRecord(
            step=self.num_steps,
            started=started,
            finished=done,
            preempted=lost,
            evicted=decision.evict,
            resumed=list(
                zip(
                    resumed[: out[k.RESUMED]].tolist(),
                    after[: out[k.RESUMED]].tolist(),
                    strict=True,
                )
            ),
            num_running=out[k.SCHEDULED],
            num_waiting=len(self._waiting),
            prefill_tokens=out[k.PREFILL_TOKENS],
            num_decoding=out[k.NUM_DECODING],
            output_tokens=out[k.NEW_OUTPUT],
            kv_tokens=out[k.KV_TOKENS],
            used_blocks=self.rules.num_blocks - out[k.FREE_AT_PEAK],
            cached_tokens=out[k.CACHED_TOKENS],
            wake_s=decision.wake_s,
        )

    def _now_running(self) -> Ints:
        return self._running[: self._out[k.RUNNING]]

    def _decide(self, now_s: float) -> Decision:
        """Call the policy, unless its last decision still stands."""
        last, num_running = self._last, int(self._out[k.RUNNING])
        self._raise_outlived(self._now_running(), last.changed)
        free = int(self._out[k.FREE])
        if not self.always_ask and last.stands(
            self.num_steps, lambda: now_s, num_running, free
        ):
            return NOTHING
        running = self._now_running().copy()
        running.flags.writeable = False
        return last.ask(
            self.policy,
            self.num_steps,
            now_s,
            running,
            self.table.view,
            free,
            self._waiting,
            None if self._cache is None else self._cache.forest,
        )

    def _predict(self, i: int) -> None:
        """Predict a request's answer length, given its tokens so far."""
        if self.predictor is None:
            return
        ints = self.table.ints
        output_tokens = int(ints[k.OUTPUT_TOKENS, i])
        predicted = self.predictor.predict(output_tokens)
        if predicted is None:
            return
        ints[k.PREDICTED, i] = max(min(predicted, self._longest(i)), 1)

    def _longest(self, i: int) -> int:
        """Longest answer of a request that the cache can hold."""
        rules = self.rules
        slots = rules.num_blocks * rules.block_size - rules.extra_slots
        return slots + 1 - int(self.table.ints[k.PREFILL, i])

    def _correct(self, i: int) -> None:
        """Replace a request's hints by what they are trusted for."""
        if self.trust is None:
            return
        ints, score = self.table.ints, self.table.score
        client = None if self._clients is None else self._clients[i]
        hint = int(ints[k.PREDICTED, i])
        length, score[i] = self.trust.enter(i, client, hint, float(score[i]))
        ints[k.PREDICTED, i] = max(min(length, self._longest(i)), 1)

    def _raise_outlived(self, ids: Ints, changed: list[int]) -> None:
        if self.trust is not None:
            changed += self.trust.raise_outlived(self.table, ids, self._longest)

    def _apply(self, decision: Decision) -> None:
        """Check the decision, evict requests, and reorder the running ones."""
        if decision.evict:
            self._stop_running(decision.evict)
            self._move((), decision.evict)
        if decision.order is not None:
            running = self._now_running()
            order = np.array(decision.order, dtype=np.int64)
            if not np.array_equal(np.sort(order), np.sort(running)):
                raise ValueError(
                    "a policy's order must name all running requests, each id once."
                )
            running[:] = order
        unknown = [i for i in decision.start if i not in self._waiting]
        if unknown or len(set(decision.start)) < len(decision.start):
            raise ValueError(
                f"a policy may start waiting requests only, each once: {unknown}."
            )

    def _stop_running(self, ids: Sequence[int]) -> None:
        """Stop some running requests and free their KV."""
        running = self._now_running()
        gone = np.isin(running, np.array(ids, dtype=np.int64))
        if gone.sum() != len(ids):
            raise ValueError(f"a policy may evict running requests only: {list(ids)}.")
        restart = int(self._rules[k.RESTART])
        for i in running[gone].tolist():
            self._out[k.FREE] += k.release(self.table.ints, i, restart, self._pool)
            if self._cache is not None:
                self._cache.forest.stop(i)
        stay = running[~gone]
        self._running[: len(stay)] = stay
        self._out[k.RUNNING] = len(stay)

    def _move(self, started: Sequence[int], stopped: Sequence[int]) -> None:
        """Update the waiting requests and the changes for the next decision."""
        for i in started:
            del self._waiting[i]
        self._last.left.extend(started)
        for i in stopped:
            self._waiting[i] = None
            if self.table.ints[k.OUTPUT_TOKENS, i] >= self.table.ints[k.PREDICTED, i]:
                self._predict(i)
        if stopped:
            self._raise_outlived(np.array(stopped, dtype=np.int64), [])
        self._last.joined.extend(stopped)


def _cache_of(table: RequestTable, rules: EngineModel) -> PrefixCache:
    """Return an empty cache for the requests of a table."""
    n = table.num_ids
    chains = table.chains or PromptChains.nothing_shared(n, rules.block_size)
    if chains.block_size != rules.block_size or len(chains) != n:
        raise ValueError(
            f"chains are of {len(chains)} prompts in blocks of {chains.block_size} but "
            f"must be of {n} in blocks of {rules.block_size}."
        )
    return PrefixCache(table, rules.num_blocks, rules.block_size, chains)

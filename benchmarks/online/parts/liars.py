"""A server with clients of which one lies, in the simulator and in vLLM."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.load import rate_of_load
from sortedf.step_time import UNIT_STEPS
from sortedf.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

LIAR, NUM_HONEST = "client 0", 9

LIES: dict[str, Callable[[Ints, np.random.Generator], Ints]] = {
    "1": lambda o, rng: np.ones_like(o),
    "half": lambda o, rng: o // 2,
    "ten times": lambda o, rng: 10 * o,
    "random": lambda o, rng: (2 ** rng.uniform(0, 12, len(o))).astype(np.int64),
    "later": lambda o, rng: np.where(np.arange(len(o)) < len(o) // 2, o, 1),
}
"""Hints of the liar for its answers, in the order of arrival."""


OPTIONS = {"pars": {"starvation_s": 20_000.0}}
"""Two minutes are few unit steps, after which it would serve in order of arrival."""

FLOOR = 1.0
"""Times that later requests may get what earlier ones got, for the floor."""

PROTECTIONS: dict[str, tuple[str, dict[str, float]]] = {
    "on": ("on", {}),
    "corrected": ("corrected", {}),
    "floor": ("on", {"max_passed": FLOOR}),
}
"""`trust_hints` and options of any policy, by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Tenants:
    """Requests of several clients.

    Attributes
    ----------
    trace : Trace
        In order of arrival.
    client : list of str
    rules : EngineModel
    seed : int
    """

    trace: Trace
    client: list[str]
    rules: EngineModel
    seed: int

    @property
    def is_liar(self) -> NDArray[np.bool_]:
        """Whether each request is the liar's."""
        return np.array([name == LIAR for name in self.client])

    def hints(self, lie: str) -> Ints:
        """Hints with the liar's lie; "none" if it does not lie."""
        hints, mine = self.trace.decode.copy(), self.is_liar
        if lie != "none":
            rng = np.random.default_rng(self.seed + 1000)
            hints[mine] = np.maximum(LIES[lie](hints[mine], rng), 1)
        return hints


def tenants(n: int, load: float, seed: int, *, small: bool = False) -> Tenants:
    """Draw requests of nine honest clients and one that lies, with Poisson arrivals.

    The liar's answers have 1,000 tokens (`small`: 200) and are 70 % of the work, so
    that the others alone would hardly wait.
    """
    rng = np.random.default_rng(seed)
    shrink = 5 if small else 1
    rules = EngineModel.vllm(
        1000 if small else 20_000,
        block_size=32,
        max_num_seqs=64,
        max_batched_tokens=2048,
    )
    volume = 0.0
    prefill: list[int] = []
    decode: list[int] = []
    client: list[str] = []
    liars_volume = 0.0
    while len(prefill) < n:
        lies = liars_volume < 0.7 * volume
        s = int(rng.integers(20, 80)) if lies else int(rng.lognormal(4.5, 1.0)) + 1
        o = 1000 if lies else min(int(rng.lognormal(4.8, 0.9)) + 1, 1500)
        s, o = min(s, 1000) // shrink + 1, o // shrink + 1
        own = s * o + o * o / 2
        volume += own
        liars_volume += own * lies
        prefill.append(s)
        decode.append(o)
        client.append(LIAR if lies else f"client {rng.integers(1, 1 + NUM_HONEST)}")
    s_all, o_all = np.array(prefill), np.array(decode)
    shape = Trace(s_all, o_all)
    rate = rate_of_load(load, shape, rules, UNIT_STEPS)
    arrival_s = np.cumsum(rng.exponential(1 / rate, n))
    return Tenants(Trace(s_all, o_all, arrival_s), client, rules, seed)


def run_simulated(tenants: Tenants, policy: str, lie: str, protection: str) -> Floats:
    """Latency of each request in the step engine, in steps."""
    hints = tenants.hints(lie)
    trust, more = PROTECTIONS[protection]
    log = simulate(
        tenants.trace,
        policy,
        tenants.rules,
        predicted=hints,
        score=hints.astype(np.float64),
        trust_hints=trust,
        clients=tenants.client,
        options={**OPTIONS.get(policy, {}), **more},
    )
    return np.asarray(log.completion_s - tenants.trace.arrival_s)


def run_vllm(tenants: Tenants, policy: str, lie: str, protection: str) -> Floats:
    """Latency of each request in a real engine with a tiny model, in steps.

    The clock counts steps, so that it does not matter how fast the machine is.
    """
    from online.executor.prompts import random_prompt
    from online.executor.scheduler_options import VARIABLE
    from online.executor.vllm_engine import VllmSettings, start_engine
    from online.policy import make_policy
    from online.requests import RequestTable

    trust, more = PROTECTIONS[protection]
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = json.dumps({"policy": policy, "trust_hints": trust})
    try:
        engine, vllm = start_engine(VllmSettings(tenants.rules, max_model_len=600))
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before
    core: Any = engine.engine_core
    now = [0]
    core.engine_core.scheduler.attach(
        RequestTable(), make_policy(policy, **more), clock=lambda: float(now[0])
    )
    trace, hints = tenants.trace, tenants.hints(lie)
    completion = np.zeros(trace.num_requests)
    coming = 0
    while coming < trace.num_requests or engine.has_unfinished_requests():
        while coming < trace.num_requests and trace.arrival_s[coming] <= now[0]:
            params = vllm.SamplingParams(
                max_tokens=int(trace.decode[coming]),
                ignore_eos=True,
                detokenize=False,
                extra_args={
                    "predicted_tokens": int(hints[coming]),
                    "client": tenants.client[coming],
                },
            )
            prompt = random_prompt(coming, int(trace.prefill[coming]))
            engine.add_request(str(coming), {"prompt_token_ids": prompt}, params)
            coming += 1
        outputs = engine.step() if engine.has_unfinished_requests() else ()
        now[0] += 1
        for output in outputs:
            if output.finished:
                completion[int(output.request_id)] = now[0]
    core.shutdown()
    return np.asarray(completion - trace.arrival_s)

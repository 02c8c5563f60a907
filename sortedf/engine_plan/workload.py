"""Requests, the rules of the engine that serves them, and its step times."""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import MAX_TOKENS, frozen_ints
from sortedf.errors import OversizeError
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.engine_model import EngineModel


@dataclass(frozen=True, slots=True, eq=False)
class EngineWorkload:
    """Requests for one engine, with arrivals in seconds. Checked once, then read-only.

    Parameters
    ----------
    prefill, decode : array_like of int, shape (n,)
        Prompts `s` and answers `o`, in tokens, at least 1.
    rules : EngineModel
        Rules of the engine.
    step_times : tuple of StepTime
        A step takes the largest of them: hardware that computes and reads at the same
        time has two, all other hardware one.
    arrival_s : array_like of float, shape (n,), optional
        Arrival time of each request; 0 for all (a backlog) if left out.

    Raises
    ------
    OversizeError
        If a request can never run under the rules.
    ValueError, TypeError
        If an entry is out of range; the message names it.
    """

    prefill: NDArray[np.int64]
    decode: NDArray[np.int64]
    rules: EngineModel
    step_times: tuple[StepTime, ...] = (UNIT_STEPS,)
    arrival_s: NDArray[np.float64] = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # types of arguments, which differ from those of the attributes

        def __init__(
            self,
            prefill: ArrayLike,
            decode: ArrayLike,
            rules: EngineModel,
            step_times: tuple[StepTime, ...] = ...,
            arrival_s: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("prefill", "decode"):
            values = getattr(self, name)
            put(self, name, frozen_ints(name, values, minimum=1, maximum=MAX_TOKENS))
        if not self.step_times:
            raise ValueError("step_times is empty but must hold one step time or more.")
        arrival_s = self.arrival_s
        if arrival_s is None:
            arrival_s = np.zeros(self.num_requests)
        arrival_s = np.array(arrival_s, dtype=np.float64)
        if len(arrival_s) != self.num_requests or len(self.decode) != len(self.prefill):
            raise ValueError(
                f"prefill, decode and arrival_s have {len(self.prefill)}, "
                f"{len(self.decode)} and {len(arrival_s)} entries; they must be "
                "equally long."
            )
        bad = ~(np.isfinite(arrival_s) & (arrival_s >= 0))
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                f"arrival_s[{i}] = {arrival_s[i]} but must be a number, 0 or more."
            )
        arrival_s.flags.writeable = False
        put(self, "arrival_s", arrival_s)
        self._refuse_oversize()

    @property
    def num_requests(self) -> int:
        """`n`; request ids are 0 to n - 1."""
        return len(self.prefill)

    @property
    def is_backlog(self) -> bool:
        """Whether every request arrives at 0."""
        return not self.arrival_s.any()

    @property
    def has_equal_steps(self) -> bool:
        """Whether all steps are equally long, whatever they process."""
        return all(time.is_constant for time in self.step_times)

    def refuse_unplanned(self) -> None:
        """Raise a ValueError if the engine has rules that plans do not support."""
        if self.rules.long_prefill_token_threshold:
            raise ValueError(
                "long_prefill_token_threshold = "
                f"{self.rules.long_prefill_token_threshold} but must be 0 where an "
                "engine is planned for."
            )
        if self.rules.prefix_caching:
            raise ValueError(
                "prefix_caching must be off where an engine is planned for: what "
                "prompts share is not known."
            )

    def step_s(self, prefill_tokens: int, decoding: int, kv_tokens: int) -> float:
        """Duration of a step."""
        return max(
            time.seconds(prefill_tokens, decoding, kv_tokens)
            for time in self.step_times
        )

    def sha256(self) -> str:
        """SHA-256 over everything that a bound or a plan depends on, in hexadecimal."""
        rules = self.rules
        numbers = [
            *(rules.kv_budget, rules.block_size, rules.seqs_cap, rules.tokens_cap),
            *(int(rules.chunked_prefill), int(rules.reserve_prompt)),
            *(rules.watermark_blocks, rules.extra_slots, rules.eviction),
            *(
                [value.hex() for value in map(float, astuple(t))]
                for t in self.step_times
            ),
        ]
        digest = hashlib.sha256(json.dumps(numbers).encode())
        for array in (self.prefill, self.decode):
            digest.update(array.astype("<i8").tobytes())
        digest.update(self.arrival_s.astype("<f8").tobytes())
        return digest.hexdigest()

    def _refuse_oversize(self) -> None:
        pairs = zip(self.prefill.tolist(), self.decode.tolist(), strict=True)
        reasons = {
            i: why for i, p in enumerate(pairs) if (why := self.rules.refusal(*p))
        }
        if reasons:
            named = "; ".join(f"request {i} {why}" for i, why in [*reasons.items()][:5])
            raise OversizeError(
                f"{len(reasons)} of {self.num_requests} requests can never run: "
                f"{named}.",
                tuple(reasons),
            )

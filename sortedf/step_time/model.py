"""Duration of a step in seconds, as a function of its tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class StepTime:
    """Linear model of a step's duration.

    seconds = constant + prefill_token * P + running * R + kv_token * K,

    with P the prompt tokens processed in the step, R the requests that decode in it
    and K the tokens of KV that are read. The default is the papers' unit step.

    Attributes
    ----------
    constant_s, prefill_token_s, running_s, kv_token_s : float
        Seconds per step, per prompt token, per decoding request, per token of KV.
    """

    constant_s: float = 1.0
    prefill_token_s: float = 0.0
    running_s: float = 0.0
    kv_token_s: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(
                    f"{field.name} = {value} but must be a number of seconds, 0 or "
                    "more."
                )
        if not self.constant_s > 0:
            raise ValueError("constant_s = 0 but must be above 0.")

    @property
    def is_constant(self) -> bool:
        """Whether every step takes the same time."""
        return not (self.prefill_token_s or self.running_s or self.kv_token_s)

    def seconds(self, prefill_tokens: int, decoding: int, kv_tokens: int) -> float:
        """Duration of a step."""
        return (
            self.constant_s
            + self.prefill_token_s * prefill_tokens
            + self.running_s * decoding
            + self.kv_token_s * kv_tokens
        )

    def work(self, prefill_tokens: float, output_tokens: float) -> float:
        """Service of a request's tokens, in seconds.

        A step's constant is shared by all running requests, so only the terms per
        token count. No token counts 0: if one of the two coefficients is 0, the other
        is used for both, and if both are 0, each token counts `constant_s`.
        """
        least = self.prefill_token_s or self.running_s or self.constant_s
        prefill_token_s = self.prefill_token_s or self.running_s or least
        running_s = self.running_s or least
        return prefill_token_s * prefill_tokens + running_s * output_tokens


UNIT_STEPS = StepTime()
"""The papers' step time: every step takes 1."""

"""Options of the scheduler class in the engine's configuration."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from online import policy
from online.hint_trust import make_trust
from online.named import check_options
from online.predictors import make_predictor
from sortedf.shown import shown_repr
from sortedf.step_time import StepTime, step_time_of

if TYPE_CHECKING:
    from online.predictors import Predictor
    from online.ranking.scorer_service import ScorerService
    from online.state import Policy

VARIABLE = "SORTEDF_SCHEDULER"
"""Environment variable with the options as a JSON object."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Policy of the scheduler class, and sources of answer lengths.

    Attributes
    ----------
    policy : str
    policy_options : dict
        Options of the policy, including `max_wait_s`: all keys not listed here.
    step_time : StepTime, optional
        Measured while the engine serves if left out. In the options: seconds, a preset
        or a file as for `--step-time`, or an object with the model's terms.
    step_log : str, optional
        File for a line about each step, as `sortedf calibrate` reads it; an existing
        one is overwritten.
    max_predicted : int, optional
        See `Hints`.
    predictor : str or dict, optional
        Name in `PREDICTORS`, or an object with `name` and that predictor's options; for
        requests without a hint of their length.
    ranker : str, optional
        Folder of a trained ranker, which scores requests without a score and predicts
        lengths of those without a hint.
    ranker_quantile : float
        Quantile of the length to use for a score.
    trust_hints : str
        One of `online.hint_trust.TRUST_MODES`; see there.
    """

    policy: str = "svf"
    policy_options: dict[str, Any] = field(default_factory=dict)
    step_time: StepTime | None = None
    step_log: str | None = None
    max_predicted: int | None = None
    predictor: str | dict[str, Any] | None = None
    ranker: str | None = None
    ranker_quantile: float = 0.5
    trust_hints: str = "on"

    def __post_init__(self) -> None:
        make_trust(self.trust_hints)  # raises for another word
        if self.trust_hints != "on" and (self.ranker or self.predictor):
            raise ValueError(
                f"trust_hints = {self.trust_hints!r} learns from completed answers "
                "itself and needs neither a predictor nor a ranker."
            )
        if self.max_predicted is not None and self.max_predicted < 1:
            raise ValueError(
                f"max_predicted = {self.max_predicted} but must be at least 1."
            )
        if not 0 < self.ranker_quantile < 1:
            raise ValueError(
                f"ranker_quantile = {self.ranker_quantile} but must be above 0 and "
                "below 1."
            )

    @classmethod
    def of(cls, options: dict[str, Any]) -> SchedulerOptions:
        """Split the scheduler's own options from the policy's."""
        rest = dict(options)
        names = (
            "policy", "max_predicted", "predictor", "ranker", "ranker_quantile",
            "step_log", "trust_hints",
        )  # fmt: skip
        mine = {name: rest.pop(name) for name in names if name in rest}
        check_options("scheduler class", "sortedf", cls, mine)
        step_time = _step_time(rest.pop("step_time", None))
        return cls(step_time=step_time, policy_options=rest, **mine)

    def make_policy(self) -> Policy:
        """Create a new policy object."""
        return policy.make_policy(self.policy, **self.policy_options)

    def make_predictor(self, longest: int) -> Predictor | None:
        """Create the predictor for answers of at most `longest` tokens, if any."""
        if self.predictor is None:
            return None
        options = self.predictor
        options = {"name": options} if isinstance(options, str) else dict(options)
        if "name" not in options:
            raise ValueError(f"predictor = {shown_repr(options)} but must have a name.")
        if options["name"] == "history":
            options.setdefault("longest", longest)
        return make_predictor(options.pop("name"), **options)

    def start_scorer(
        self, tokenizer: tuple[str, str | None] | None
    ) -> ScorerService | None:
        """Start the ranker in a separate process, if one is configured."""
        if self.ranker is None:
            return None
        from online.ranking.scorer_service import RankerFolder, ScorerService

        return ScorerService(RankerFolder(self.ranker, tokenizer, self.ranker_quantile))


def _step_time(given: Any) -> StepTime | None:
    """Step time of an option."""
    if given is None:
        return None
    if isinstance(given, str):
        return step_time_of(given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return StepTime(given)
    if isinstance(given, dict):
        check_options("scheduler class", "step_time", StepTime, given)
        return StepTime(**given)
    raise ValueError(
        f"step_time = {shown_repr(given)} but must be a number of seconds, a preset, a "
        "file or an object."
    )


def scheduler_options(vllm_config: Any) -> dict[str, Any]:
    """Options of the scheduler: additional_config["sortedf"], else SORTEDF_SCHEDULER.

    See `SchedulerOptions`; the environment variable holds a JSON object.
    """
    extra = getattr(vllm_config, "additional_config", None) or {}
    options = extra.get("sortedf") if isinstance(extra, dict) else None
    if options is None:
        text = os.environ.get(VARIABLE, "{}")
        try:
            options = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{VARIABLE} = {shown_repr(text)} is no JSON object: {error}."
            ) from None
    if not isinstance(options, dict):
        raise ValueError(
            f"the scheduler's options must be an object, not {shown_repr(options)}."
        )
    return dict(options)

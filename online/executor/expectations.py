"""Expected answer lengths and scores of the requests of a real engine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from online import step_kernels as k
from online.executor.hints import Hints
from online.hint_trust import make_trust
from online.requests import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.executor.scheduler_options import SchedulerOptions
    from online.ranking.scorer_worker import Prompt
    from online.requests import RequestTable


class Arriving(NamedTuple):
    """What an engine knows of a request that arrives.

    Attributes
    ----------
    prefill : int
        Tokens of the prompt.
    max_tokens : int
        Longest possible answer.
    extra : dict
        Hints; see `online.executor.hints`.
    prompt : list of int or str, optional
        The prompt, for a ranker.
    """

    prefill: int
    max_tokens: int
    extra: dict[str, Any]
    prompt: Prompt | None


class Expectations:
    """Enters requests into a table, with a length and a score for each.

    A request's own hints come first, then a ranker's score of its prompt, then a
    prediction from completed answers.

    Parameters
    ----------
    options : SchedulerOptions
    longest : int
        Longest possible answer of the engine.
    slots : int
        Tokens that the cache can hold.
    tokenizer : (str, str or None), optional
        Name of the engine's tokenizer and its revision, for prompts given as tokens.

    Attributes
    ----------
    table : RequestTable
        Must be set before the first request.
    scores : ScorerService, optional
        Scores prompts, if there is a ranker.
    """

    def __init__(
        self,
        options: SchedulerOptions,
        *,
        longest: int,
        slots: int,
        tokenizer: tuple[str, str | None] | None,
    ) -> None:
        self.table: RequestTable
        self._slots = slots
        self._hints = Hints(options.max_predicted)
        self._predictor = options.make_predictor(longest)
        self.scores = options.start_scorer(tokenizer)
        self._trust = make_trust(options.trust_hints, longest=longest)
        self._num_keys = 0
        # Requests whose scores are computed: id by key, and key by id.
        self._unscored: dict[int, int] = {}
        self._keys: dict[int, int] = {}
        self._own_length: set[int] = set()

    def enter(self, request: Arriving, now_s: float) -> int:
        """Add a request to the table; return its id."""
        prefill, longest = request.prefill, min(request.max_tokens, UNKNOWN)
        learned = None if self._predictor is None else self._predictor.predict()
        hint = self._hints.read(request.extra, longest, learned)
        predicted = self._within_cache(prefill, hint.predicted)
        i = self.table.add(prefill, longest, predicted, now_s, hint.score)
        if self._trust is not None:
            length = hint.predicted if hint.has_length else None
            length, score = self._trust.enter(i, hint.client, length, hint.score)
            self.table.update_hint(i, self._limited(i, length), score)
        if self.scores is not None and (not hint.has_length or math.isnan(hint.score)):
            prompt = hint.text or request.prompt
            if prompt:
                self._num_keys += 1
                self._keys[i], self._unscored[self._num_keys] = self._num_keys, i
                if hint.has_length:
                    self._own_length.add(i)
                self.scores.submit(self._num_keys, prompt)
        return i

    @property
    def awaits_scores(self) -> bool:
        """Whether scores are being computed."""
        return bool(self._unscored)

    def take_scores(self) -> list[int]:
        """Enter the scores computed by now; return the ids of changed requests.

        A request's own hints take precedence.
        """
        assert self.scores is not None
        changed = []
        for scored in self.scores.take():
            i = self._unscored.pop(scored.key, None)
            if i is None:
                continue
            del self._keys[i]
            score = scored.score if math.isnan(self.table.score[i]) else None
            length = None
            if scored.length is not None and i not in self._own_length:
                length = self._limited(i, scored.length)
            if self.table.update_hint(i, length, score):
                changed.append(i)
        if self.scores.failed is not None:
            self._unscored.clear()
            self._keys.clear()
        return changed

    def preempted(self, i: int) -> None:
        """Raise the prediction of a preempted request that has outlived it."""
        if self._trust is not None:
            self.raise_outlived(np.array([i]))
        ints = self.table.ints
        output_tokens = int(ints[k.OUTPUT_TOKENS, i])
        if self._predictor is None or output_tokens < ints[k.PREDICTED, i]:
            return
        predicted = self._predictor.predict(output_tokens)
        if predicted is not None:
            self.table.update_hint(i, self._limited(i, predicted), None)

    @property
    def raises_lengths(self) -> bool:
        """Whether lengths are raised when they are outlived."""
        return self._trust is not None

    def raise_outlived(self, ids: NDArray[np.int64]) -> list[int]:
        """Raise the lengths that requests have outlived; return the changed ones."""
        assert self._trust is not None
        return self._trust.raise_outlived(self.table, ids, self._longest)

    def ended(self, i: int, answer: int | None) -> None:
        """Learn from a request that has ended, with an answer of so many tokens.

        None if it was cancelled.
        """
        if self.scores is not None:
            self._own_length.discard(i)
            key = self._keys.pop(i, None)
            if key is not None:
                del self._unscored[key]
                self.scores.cancel(key)
        if self._trust is not None:
            self._trust.ended(i, answer)
        if self._predictor is not None and answer is not None:
            self._predictor.observe([answer])

    def close(self) -> None:
        """Stop the ranker's process."""
        if self.scores is not None:
            self.scores.close()

    def _limited(self, i: int, predicted: float) -> int:
        """Limit a prediction to the request's longest answer."""
        return max(1, min(round(predicted), self._longest(i)))

    def _longest(self, i: int) -> int:
        """Return the longest answer that a request may have, in the cache."""
        prefill, most = self.table.ints[[k.PREFILL, k.DECODE], i].tolist()
        return self._within_cache(prefill, most)

    def _within_cache(self, prefill: int, predicted: float) -> int:
        # A request that does not fit alone by its hint must not wait for ever.
        return max(1, min(round(predicted), self._slots + 1 - prefill))

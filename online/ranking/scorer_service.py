"""Scores computed beside a serving engine, which never waits for one.

The scorer lives in a process of its own. A thread would share Python's lock with the
engine's scheduler: whoever waits for the lock may wait for its switch interval, 5 ms,
each time that tokenizing or a model's Python code holds it, and 25 us is what a whole
step may cost. The process runs one thread of torch at low priority, on any core (an
engine may have bound itself, and so its children, to some), and ends by itself when
the engine does. On the engine's side one thread passes prompts on and takes answers in;
it does nothing but wait.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from online.ranking.libraries import load, quiet_transformers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

logger = logging.getLogger("sortedf")

Prompt: TypeAlias = str | Sequence[int]
"""A text, or the token ids that an engine has of it."""

Rating: TypeAlias = tuple[float, float | None]
"""A score, lower first, and the answer length that goes with it, if that is known."""

Rate: TypeAlias = Callable[[list[Prompt]], Sequence[Rating]]
"""Rates prompts, one rating each."""

KEPT = 1024
"""Tokens of a prompt that are kept at its head, and at its tail."""

KEPT_LETTERS = 8 * KEPT
"""The same for a text; an encoder reads far less of either."""

BATCH = 32
"""Most prompts that are rated at once."""


class Scored(NamedTuple):
    """What became known of a prompt.

    Attributes
    ----------
    key : int
        What it was submitted with.
    score : float
    length : float, optional
        Expected answer length, in tokens.
    """

    key: int
    score: float
    length: float | None


class ScorerService:
    """Rates prompts in another process; nothing here waits, and nothing fails.

    A prompt that cannot be rated has no score, for a reason that is logged. When the
    scorer cannot be loaded or dies, nothing has one from then on.

    Parameters
    ----------
    make : callable
        Makes the scorer, in the other process; it is sent there by pickling.
    batch : int
        Most prompts that are rated at once.
    """

    def __init__(self, make: Callable[[], Rate], *, batch: int = BATCH) -> None:
        self._batch = batch
        self._asked: queue.SimpleQueue[tuple[int, Prompt] | None] = queue.SimpleQueue()
        self._scored: deque[Scored] = deque()
        self._reasons: set[str] = set()
        self._closed = False
        self.failed: str | None = None
        self._process = start_worker()
        self._thread = threading.Thread(
            target=self._run, args=(make,), name="sortedf-scores", daemon=True
        )
        self._thread.start()

    def submit(self, key: int, prompt: Prompt) -> None:
        """Ask for the score of a prompt."""
        if self.failed is None:
            self._asked.put((key, shortened(prompt)))

    def take(self) -> list[Scored]:
        """Return what became known since the last call."""
        scored: list[Scored] = []
        while self._scored:
            scored.append(self._scored.popleft())
        return scored

    def close(self) -> None:
        """End the other process."""
        if self._closed:
            return
        self._closed = True
        self._asked.put(None)
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _run(self, make: Callable[[], Rate]) -> None:
        """Pass prompts on and take answers in, until closed or broken."""
        try:
            self._send((sys.path, pickle.dumps(make)))
            problem = self._receive()
            if problem is not None:
                self._give_up(problem)
                return
            while (batch := self._next_batch()) is not None:
                self._send([prompt for _, prompt in batch])
                self._note([key for key, _ in batch], self._receive())
        except Exception as error:
            if not self._closed:
                self._give_up(f"its process ended ({error!r})")

    def _next_batch(self) -> list[tuple[int, Prompt]] | None:
        """Wait for prompts; None when closed."""
        batch: list[tuple[int, Prompt]] = []
        while not batch or (len(batch) < self._batch and not self._asked.empty()):
            asked = self._asked.get()
            if asked is None:
                return None
            batch.append(asked)
        return batch

    def _send(self, content: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(content, self._process.stdin)
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        return pickle.load(self._process.stdout)

    def _note(self, keys: list[int], answers: list[Rating | str]) -> None:
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, str):
                self._say_once(answer)
            else:
                self._scored.append(Scored(key, *answer))

    def _say_once(self, reason: str) -> None:
        if reason not in self._reasons:
            self._reasons.add(reason)
            logger.warning("a prompt has no score: %s.", reason)

    def _give_up(self, reason: str) -> None:
        self.failed = reason
        logger.warning("there are no scores any more: %s.", reason)


def shortened(prompt: Prompt) -> Prompt:
    """Cut the middle out of a long prompt."""
    kept = KEPT_LETTERS if isinstance(prompt, str) else KEPT
    if len(prompt) <= 2 * kept:
        return prompt
    head, tail = prompt[:kept], prompt[-kept:]
    if isinstance(head, str) and isinstance(tail, str):
        return head + tail
    return [*head, *tail]


def start_worker() -> subprocess.Popen[bytes]:
    """Start the process in which scores are computed."""
    settings = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "online.ranking.scorer_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **settings},
    )


@dataclass(frozen=True, slots=True)
class RankerFolder:
    """Makes a scorer of a trained ranker's folder.

    Attributes
    ----------
    folder : str
    tokenizer : str, optional
        Folder or hub name of the engine's tokenizer, for prompts that are token ids.
    quantile : float
        Which quantile of the answer length goes with a score.
    """

    folder: str
    tokenizer: str | None = None
    quantile: float = 0.5

    def __call__(self) -> Rate:
        """Load it."""
        from online.ranking.ranker import load_ranker

        load("torch").set_num_threads(1)
        ranker = load_ranker(self.folder, device="cpu")
        tokenizer: Any = None
        if self.tokenizer is not None:
            with quiet_transformers() as transformers:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.tokenizer)

        def text_of(prompt: Prompt) -> str:
            if isinstance(prompt, str):
                return prompt
            if tokenizer is None:
                raise ValueError("the engine has no tokenizer to read its prompt with")
            text: str = tokenizer.decode(list(prompt), skip_special_tokens=True)
            return text

        def rate(prompts: list[Prompt]) -> list[Rating]:
            scores = ranker.score([text_of(prompt) for prompt in prompts])
            lengths = ranker.lengths(scores, self.quantile)
            return list(zip(scores.tolist(), lengths.tolist(), strict=True))

        return rate

"""Scoring of prompts in parallel to a serving engine, which never waits for scores.

The scorer runs in a separate process. A thread would share Python's lock with the
engine's scheduler, which could wait for the lock's switch interval, 5 ms, each time
that tokenisation or a model's Python code holds it, while a whole step may cost 25 us.
The process runs one thread of torch at low priority, on any core (an engine may have
bound itself, and so its children, to some), and ends when the engine does. On the
engine's side one thread sends prompts and receives scores; it mostly sleeps.

The newest waiting prompt is scored first, since a score is useful before its request
starts, and the longer a prompt has waited the more likely its request has started. Nor
can a burst of prompts delay a later one by more than the current batch. Shortest first
would let short prompts delay all others. If too many wait, the oldest is dropped
without a score, and prompts of ended requests are removed at once.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from online.processes import SAFE_PATH, import_path
from online.ranking import scorer_worker
from online.ranking.libraries import load, quiet_transformers

if TYPE_CHECKING:
    from collections.abc import Callable

    from online.ranking.scorer_worker import Prompt, Rate, Rating


logger = logging.getLogger("sortedf")

KEPT = 1024
"""Tokens of a prompt kept at each end."""

KEPT_LETTERS = 8 * KEPT
"""Characters of a text kept at each end; an encoder uses far less of either."""

BATCH = 32
"""Prompts of a batch at most."""

MOST_WAITING = 1024
"""Waiting prompts at most: a few seconds of work, and about 75 MB of long prompts."""


class Scored(NamedTuple):
    """Score of a prompt.

    Attributes
    ----------
    key : int
        Key of its submission.
    score : float
    length : float, optional
        Expected answer length, in tokens.
    """

    key: int
    score: float
    length: float | None


class ScorerService:
    """Scores prompts in another process; its methods do not block or raise.

    A prompt that cannot be scored gets no score, and the reason is logged. If the
    scorer cannot be loaded or dies, no further prompt gets a score.

    Parameters
    ----------
    make : callable
        Creates the scorer in the other process; must be picklable.
    batch : int
        Prompts of a batch at most.
    most_waiting : int
        Waiting prompts at most.

    Attributes
    ----------
    num_dropped : int
        Prompts dropped because too many waited.
    failed : str, optional
        Reason why the scorer has ended, if it has.
    """

    def __init__(
        self,
        make: Callable[[], Rate],
        *,
        batch: int = BATCH,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._batch = batch
        self._most_waiting = most_waiting
        # Both threads modify it, by single atomic operations: the engine must not wait
        # for a lock.
        self._waiting: OrderedDict[int, Prompt] = OrderedDict()
        self._sent: set[int] = set()
        self._work = threading.Lock()  # unlocked when there is work
        self._work.acquire()
        self._scored: deque[Scored] = deque()
        self._reasons: set[str] = set()
        self._closed = False
        self.num_dropped = 0
        self.failed: str | None = None
        self._process = start_worker()
        self._thread = threading.Thread(
            target=self._run, args=(make,), name="sortedf-scores", daemon=True
        )
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """Number of waiting prompts."""
        return len(self._waiting)

    def submit(self, key: int, prompt: Prompt) -> None:
        """Submit a prompt for scoring."""
        if self.failed is not None:
            return
        self._waiting[key] = shortened(prompt)
        if len(self._waiting) > self._most_waiting:
            self._drop_oldest()
        self._notify()

    def cancel(self, key: int) -> None:
        """Remove a prompt whose score is no longer needed; unknown keys are ignored."""
        self._waiting.pop(key, None)
        self._sent.discard(key)

    def take(self) -> list[Scored]:
        """Return the scores received since the last call."""
        scored: list[Scored] = []
        while self._scored:
            scored.append(self._scored.popleft())
        return scored

    def close(self) -> None:
        """Stop the other process."""
        if self._closed:
            return
        self._closed = True
        self._notify()
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _notify(self) -> None:
        """Wake the other thread, now or after its current batch."""
        if self._work.locked():
            self._work.release()

    def _drop_oldest(self) -> None:
        with suppress(KeyError):  # the other thread has taken all of them
            self._waiting.popitem(last=False)
            self.num_dropped += 1
            self._log_once(
                f"more than {self._most_waiting:,} prompts wait, so that the oldest "
                "are dropped"
            )

    def _run(self, make: Callable[[], Rate]) -> None:
        """Send prompts and receive scores, until closed or broken."""
        try:
            self._send((import_path(), pickle.dumps(make)))
            problem = self._receive()
            if problem is not None:
                self._give_up(problem)
                return
            while batch := self._next_batch():
                self._send([prompt for _, prompt in batch])
                self._store([key for key, _ in batch], self._receive())
        except Exception as error:
            if not self._closed:
                self._give_up(f"its process ended ({error!r})")

    def _next_batch(self) -> list[tuple[int, Prompt]]:
        """Wait for prompts and return the newest; empty when closed."""
        while not self._closed:
            batch: list[tuple[int, Prompt]] = []
            with suppress(KeyError):  # no further prompts wait
                while len(batch) < self._batch:
                    batch.append(self._waiting.popitem())
            if batch:
                self._sent = {key for key, _ in batch}
                return batch
            self._work.acquire()
        return []

    def _send(self, content: Any) -> None:
        assert self._process.stdin is not None
        pickle.dump(content, self._process.stdin)
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        return pickle.load(self._process.stdout)

    def _store(self, keys: list[int], answers: list[Rating | str]) -> None:
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, str):
                self._log_once(answer)
            elif key in self._sent:
                self._scored.append(Scored(key, *answer))

    def _log_once(self, reason: str) -> None:
        if reason not in self._reasons:
            self._reasons.add(reason)
            logger.warning("a prompt has no score: %s.", reason)

    def _give_up(self, reason: str) -> None:
        self.failed = reason
        self._waiting.clear()
        logger.warning("prompts are no longer scored: %s.", reason)


def shortened(prompt: Prompt) -> Prompt:
    """Remove the middle of a long prompt."""
    kept = KEPT_LETTERS if isinstance(prompt, str) else KEPT
    if len(prompt) <= 2 * kept:
        return prompt
    head, tail = prompt[:kept], prompt[-kept:]
    if isinstance(head, str) and isinstance(tail, str):
        return head + tail
    return [*head, *tail]


def start_worker() -> subprocess.Popen[bytes]:
    """Start the scoring process.

    It is started from its file, so that it imports only from the standard library until
    it receives the engine's import path.
    """
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", SAFE_PATH: "1"}
    return subprocess.Popen(
        [sys.executable, "-P", scorer_worker.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "", **settings},
    )


@dataclass(frozen=True, slots=True)
class RankerFolder:
    """Creates a scorer from a trained ranker's folder.

    Attributes
    ----------
    folder : str
    tokenizer : (str, str or None), optional
        Folder or hub name of the engine's tokenizer, for prompts that are token ids,
        and its revision on the hub.
    quantile : float
        Quantile of the answer length returned with a score.
    """

    folder: str
    tokenizer: tuple[str, str | None] | None = None
    quantile: float = 0.5

    def __call__(self) -> Rate:
        """Load the ranker."""
        from online.ranking.ranker import load_ranker

        load("torch").set_num_threads(1)
        ranker = load_ranker(self.folder, device="cpu")
        tokenizer: Any = None
        if self.tokenizer is not None:
            name, revision = self.tokenizer
            with quiet_transformers() as transformers:
                tokenizer = transformers.AutoTokenizer.from_pretrained(
                    name, revision=revision, trust_remote_code=False
                )

        def text_of(prompt: Prompt) -> str:
            if isinstance(prompt, str):
                return prompt
            if tokenizer is None:
                raise ValueError("the engine has no tokenizer to decode its prompt")
            text: str = tokenizer.decode(list(prompt), skip_special_tokens=True)
            return text

        def rate(prompts: list[Prompt]) -> list[Rating]:
            scores = ranker.score([text_of(prompt) for prompt in prompts])
            lengths = ranker.lengths(scores, self.quantile)
            return list(zip(scores.tolist(), lengths.tolist(), strict=True))

        return rate

"""Scores computed beside a serving engine, which never waits for one.

The scorer lives in a process of its own. A thread would share Python's lock with the
engine's scheduler: whoever waits for the lock may wait for its switch interval, 5 ms,
each time that tokenizing or a model's Python code holds it, and 25 us is what a whole
step may cost. The process runs one thread of torch at low priority, on any core (an
engine may have bound itself, and so its children, to some), and ends by itself when
the engine does. On the engine's side one thread passes prompts on and takes answers in;
it does nothing but wait.

Of the prompts that wait the newest is rated first, since a score is worth most before
its request has started, and the longer a prompt has waited the likelier it has. Nor can
a flood of prompts delay one that comes after it by more than the batch being rated.
Shortest first would let short prompts hold up all others. When too many wait, the
oldest goes without a score, and one whose request has ended is forgotten at once.
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
"""Tokens of a prompt that are kept at its head, and at its tail."""

KEPT_LETTERS = 8 * KEPT
"""The same for a text; an encoder reads far less of either."""

BATCH = 32
"""Most prompts that are rated at once."""

MOST_WAITING = 1024
"""Most prompts that wait: a few seconds of work, and about 75 MB of long prompts."""


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
    most_waiting : int
        Most prompts that wait to be rated.

    Attributes
    ----------
    num_dropped : int
        Prompts that have no score because too many waited.
    failed : str, optional
        Why there are no scores any more.
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
        # Both threads change it, by single operations that no other can come between:
        # the engine must not wait for a lock.
        self._waiting: OrderedDict[int, Prompt] = OrderedDict()
        self._sent: set[int] = set()
        self._bell = threading.Lock()  # free when there is something to do
        self._bell.acquire()
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
        """How many prompts wait to be rated."""
        return len(self._waiting)

    def submit(self, key: int, prompt: Prompt) -> None:
        """Ask for the score of a prompt."""
        if self.failed is not None:
            return
        self._waiting[key] = shortened(prompt)
        if len(self._waiting) > self._most_waiting:
            self._drop_oldest()
        self._ring()

    def cancel(self, key: int) -> None:
        """Forget a prompt whose score is of no use any more; an unknown one is none."""
        self._waiting.pop(key, None)
        self._sent.discard(key)

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
        self._ring()
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ring(self) -> None:
        """Let the other thread look, at once or when it is done with its batch."""
        if self._bell.locked():
            self._bell.release()

    def _drop_oldest(self) -> None:
        with suppress(KeyError):  # all of them were sent just now
            self._waiting.popitem(last=False)
            self.num_dropped += 1
            self._say_once(
                f"more than {self._most_waiting:,} prompts wait, so that the oldest "
                "go without"
            )

    def _run(self, make: Callable[[], Rate]) -> None:
        """Pass prompts on and take answers in, until closed or broken."""
        try:
            self._send((import_path(), pickle.dumps(make)))
            problem = self._receive()
            if problem is not None:
                self._give_up(problem)
                return
            while batch := self._next_batch():
                self._send([prompt for _, prompt in batch])
                self._note([key for key, _ in batch], self._receive())
        except Exception as error:
            if not self._closed:
                self._give_up(f"its process ended ({error!r})")

    def _next_batch(self) -> list[tuple[int, Prompt]]:
        """Wait for prompts, and take the newest; empty when closed."""
        while not self._closed:
            batch: list[tuple[int, Prompt]] = []
            with suppress(KeyError):  # no more wait
                while len(batch) < self._batch:
                    batch.append(self._waiting.popitem())
            if batch:
                self._sent = {key for key, _ in batch}
                return batch
            self._bell.acquire()
        return []

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
            elif key in self._sent:
                self._scored.append(Scored(key, *answer))

    def _say_once(self, reason: str) -> None:
        if reason not in self._reasons:
            self._reasons.add(reason)
            logger.warning("a prompt has no score: %s.", reason)

    def _give_up(self, reason: str) -> None:
        self.failed = reason
        self._waiting.clear()
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
    """Start the process in which scores are computed.

    It is started from its file, so that it imports from the standard library alone
    until it is told where the engine imports from.
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
                tokenizer = transformers.AutoTokenizer.from_pretrained(
                    self.tokenizer, trust_remote_code=False
                )

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

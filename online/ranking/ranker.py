"""A trained ranker: scores of prompts, and calibrated answer lengths."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from online.ranking.batches import score_all
from online.ranking.folder import read_folder
from online.ranking.libraries import torch
from online.ranking.prompt_tokens import PromptTokens
from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from online.ranking.length_calibration import LengthCalibration
    from online.ranking.network import Network

    Floats = NDArray[np.float64]

CACHED = 100_000
"""Cached scores, least recently used removed first."""


def load_ranker(folder: str | os.PathLike[str], device: str = "cpu") -> Ranker:
    """Load a ranker from the folder written by training.

    Parameters
    ----------
    folder : path
    device : str
        Name of a torch device: cpu, cuda, cuda:1.

    Raises
    ------
    RankingError
        If the folder is no ranker's, or the device is not available.
    MissingExtraError
        If the extra `rank` is not installed.
    """
    return Ranker.load(folder, device)


class Ranker:
    """Scores prompts: a higher score predicts a longer answer.

    Parameters
    ----------
    network : Network
    tokens : PromptTokens
    calibration : LengthCalibration
    card : dict
        Training data and settings.
    device : str
    """

    def __init__(
        self,
        network: Network,
        tokens: PromptTokens,
        calibration: LengthCalibration,
        card: dict[str, Any],
        device: str = "cpu",
    ) -> None:
        self.card = card
        self._network = network
        self._tokens = tokens
        self._calibration = calibration
        self._device = checked_device(device)
        self._known: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()
        network.module.to(self._device).eval()

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str = "cpu") -> Ranker:
        """Load a ranker from the folder written by training; see `load_ranker`."""
        network, tokenizer, card, calibration = read_folder(folder)
        vocabulary, rows = len(tokenizer), network.config.vocab_size
        if vocabulary > rows:
            raise RankingError(
                f"{folder}: the tokenizer has {vocabulary:,} tokens but the encoder "
                f"{rows:,}; they do not match."
            )
        truncation = card["settings"]["truncation"]
        tokens = PromptTokens(tokenizer, card["max_tokens"], truncation)
        return cls(network, tokens, calibration, card, device)

    def score(self, prompts: Sequence[str]) -> Floats:
        """Score prompts, in batches and with a cache.

        Parameters
        ----------
        prompts : sequence of str
            None of them empty.

        Returns
        -------
        float64 array, shape (n,)
            In the order of the prompts.

        Raises
        ------
        RankingError
            If a prompt is empty or no valid Unicode; its number counts from 0.
        """
        if isinstance(prompts, str):
            raise TypeError("prompts is one str but must be a sequence of them.")
        return self._score_ids(self._tokens.encode(prompts))

    def lengths(self, scores: ArrayLike, quantile: float = 0.5) -> Floats:
        """Quantile of the answer length for each score, in tokens, at least 1.

        It is non-decreasing in the score, so the order by length is the order by score,
        up to ties.
        """
        return self._calibration.lengths(scores, quantile)

    def _score_ids(self, ids: Sequence[Sequence[int]]) -> Floats:
        keys = [_key(row) for row in ids]
        with self._lock:
            found = {key: self._known[key] for key in keys if key in self._known}
        new = {key: row for key, row in zip(keys, ids, strict=True) if key not in found}
        if new:
            network, pad = self._network, self._tokens.pad
            scores = score_all(network, list(new.values()), pad, self._device)
            found.update(zip(new, scores.tolist(), strict=True))
        self._remember(keys, found)
        return np.array([found[key] for key in keys], dtype=np.float64)

    def _remember(self, keys: Iterable[bytes], found: dict[bytes, float]) -> None:
        with self._lock:
            for key in keys:
                self._known[key] = found[key]
                self._known.move_to_end(key)
            while len(self._known) > CACHED:
                self._known.popitem(last=False)


def checked_device(name: str) -> Any:
    """Return the torch device of a name.

    Raises
    ------
    RankingError
        If torch does not know it or cannot use it.
    """
    try:
        device = torch().device(name)
        torch().empty(1, device=device)
    except Exception as error:  # torch raises many classes
        reason = " ".join(str(error).split())[:120]
        raise RankingError(
            f"device {name!r} cannot be used here: {reason}; choose cpu, or cuda on a "
            "machine with a GPU."
        ) from None
    return device


def _key(ids: Sequence[int]) -> bytes:
    content = np.asarray(ids, dtype=np.int64).tobytes()
    return hashlib.blake2b(content, digest_size=16).digest()

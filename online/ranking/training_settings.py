"""Settings of the training of a ranker."""

from __future__ import annotations

import math
from dataclasses import dataclass

from online.ranking.losses import LOSSES
from online.ranking.prompt_tokens import TRUNCATIONS
from online.ranking.ranking_error import RankingError
from sortedf.arrays import checked_int


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of the training of a ranker.

    Attributes
    ----------
    encoder : str
        Folder of a BERT-like encoder, or its name on the hub.
    loss : {"pairwise", "pointwise", "listwise"}
    delta : float
        Pairs whose lengths differ by less than this share of the longer one are left
        out (pairwise).
    margin : float
        Required difference of the scores of a pair (pairwise).
    max_tokens : int
        Longest input in tokens, limited by the encoder's own limit.
    truncation : {"head-tail", "head", "tail"}
        Part of a longer prompt to keep.
    layers : int, optional
        Number of the encoder's first layers to use; all by default.
    frozen_layers : int
        Number of the lowest layers that, with the embeddings, are not trained; their
        outputs are computed once, which is several times faster.
    epochs : int
        Epochs at most; fewer if validation stops improving.
    patience : int
        Epochs without a better tau_b on the validation part before training ends.
    batch_size : int
        Prompts of a batch, within which pairs and lists are formed.
    learning_rate : float
        Largest learning rate of the encoder; that of the new layer is ten times higher.
    seed : int
        Seed of the split, the new layer, the batches and the dropout.
    validation, test : float
        Shares of the prompts.
    """

    encoder: str = "bert-base-uncased"
    loss: str = "pairwise"
    delta: float = 0.2
    margin: float = 1.0
    max_tokens: int = 256
    truncation: str = "head-tail"
    layers: int | None = None
    frozen_layers: int = 0
    epochs: int = 10
    patience: int = 3
    batch_size: int = 16
    learning_rate: float = 3e-5
    seed: int = 0
    validation: float = 0.1
    test: float = 0.2

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise RankingError(
                f"loss = {self.loss!r} but must be one of: {', '.join(LOSSES)}."
            )
        if self.truncation not in TRUNCATIONS:
            raise RankingError(
                f"truncation = {self.truncation!r} but must be one of: "
                f"{', '.join(TRUNCATIONS)}."
            )
        if not 0 <= self.delta < 1:
            raise RankingError(f"delta = {self.delta} but must be from 0 to below 1.")
        for name in ("margin", "learning_rate"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise RankingError(f"{name} = {value} but must be a number above 0.")
        for name, least in (
            ("max_tokens", 4),
            ("frozen_layers", 0),
            ("epochs", 1),
            ("patience", 1),
            ("batch_size", 2),
            ("seed", 0),
        ):
            checked_int(name, getattr(self, name), minimum=least, maximum=2**31 - 1)

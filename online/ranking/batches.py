"""Batches of prompts of about equal length, and padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online.ranking.libraries import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Tensor = Any

BATCH_TOKENS = 8192
"""Tokens of a scoring batch at most, including padding."""

BATCH_PROMPTS = 64


def by_length(ids: Sequence[Sequence[int]]) -> Iterator[NDArray[np.int64]]:
    """Yield batches of prompts for scoring as positions, shortest first."""
    length = np.array([len(row) for row in ids], dtype=np.int64)
    order = np.argsort(length, kind="stable")
    begin = 0
    while begin < len(order):
        end = begin + 1
        while (
            end < len(order)
            and end - begin < BATCH_PROMPTS
            and (end - begin + 1) * length[order[end]] <= BATCH_TOKENS
        ):
            end += 1
        yield order[begin:end]
        begin = end


def padded(ids: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[Tensor, Any]:
    """Tensors of padded ids and of the attention mask."""
    longest = max(map(len, ids))
    rows = [[*row, *[pad] * (longest - len(row))] for row in ids]
    marks = [[1] * len(row) + [0] * (longest - len(row)) for row in ids]
    as_tensor = torch().tensor
    return as_tensor(rows, device=device), as_tensor(marks, device=device)


def score_all(
    network: Any, ids: Sequence[Sequence[int]], pad: int, device: Any
) -> NDArray[np.float64]:
    """Score prompts in batches; scores are in the order of the prompts."""
    scores = np.empty(len(ids))
    network.module.eval()
    with torch().inference_mode():
        for batch in by_length(ids):
            tensors = padded([ids[i] for i in batch], pad, device)
            scores[batch] = network.score(*tensors).double().cpu().numpy()
    return scores

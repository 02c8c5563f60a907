"""Inputs of a network in training: token ids or cached hidden states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online.ranking.batches import by_length, padded
from online.ranking.libraries import torch
from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.ranking.network import Network
    from online.ranking.prompt_tokens import PromptTokens

    Tensor = Any
    Ints = NDArray[np.int64]

MOST_STATE_BYTES = 8 * 2**30


class FrozenStates:
    """Cached outputs of the frozen lower layers of one encoder, for all prompts.

    Trainings of the same encoder with the same number of frozen layers may share one.

    Parameters
    ----------
    layers : int
        Number of frozen layers.
    """

    def __init__(self, layers: int) -> None:
        self.layers = layers
        self._known: dict[tuple[int, ...], Tensor] = {}

    def add(
        self, network: Network, ids: Sequence[Sequence[int]], pad: int, device: Any
    ) -> None:
        """Compute the states of prompts that are not cached yet.

        Raises
        ------
        RankingError
            If it would take too much memory.
        """
        new = [row for row in dict.fromkeys(map(tuple, ids)) if row not in self._known]
        num_tokens = sum(map(len, new)) + sum(map(len, self._known))
        size = 4 * num_tokens * network.config.hidden_size
        if size > MOST_STATE_BYTES:
            raise RankingError(
                f"frozen_layers = {self.layers} would keep {size / 2**30:.1f} GiB of "
                f"hidden states, over {MOST_STATE_BYTES / 2**30:g}; choose fewer "
                "prompts, fewer max_tokens or no frozen layers."
            )
        network.module.eval()
        with torch().no_grad():
            for batch in by_length(new):
                rows = [new[i] for i in batch]
                states = network.embed(*padded(rows, pad, device), self.layers)
                each = states.split([len(row) for row in rows])
                self._known.update(
                    (row, state.clone()) for row, state in zip(rows, each, strict=True)
                )

    def batch(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Hidden states of some prompts, concatenated, and their mask."""
        hidden = torch().cat([self._known[tuple(row)] for row in ids])
        length = torch().tensor([len(row) for row in ids], device=hidden.device)
        position = torch().arange(int(length.max()), device=hidden.device)
        return hidden, position < length[:, None]


class Inputs:
    """The prompts of a training, by position.

    Parameters
    ----------
    network : Network
    tokens : PromptTokens
    texts : sequence of str
    device : torch.device
    states : FrozenStates, optional
        Cached states if the lower layers are frozen.
    """

    def __init__(
        self,
        network: Network,
        tokens: PromptTokens,
        texts: Sequence[str],
        device: Any,
        states: FrozenStates | None,
    ) -> None:
        self._network = network
        self._pad = tokens.pad
        self._device = device
        self._states = states
        self._ids = tokens.encode(texts)
        if states is not None:
            states.add(network, self._ids, tokens.pad, device)

    def scores(self, at: Ints) -> Tensor:
        """Score the prompts at some positions, as one batch."""
        rows = [self._ids[i] for i in at]
        if self._states is None:
            return self._network.score(*padded(rows, self._pad, self._device))
        hidden, mask = self._states.batch(rows)
        return self._network.score_hidden(hidden, mask, self._states.layers)

    def all_scores(self, at: Ints) -> NDArray[np.float64]:
        """Score many prompts in batches, without gradients."""
        found = np.empty(len(at))
        self._network.module.eval()
        with torch().no_grad():
            for batch in by_length([self._ids[i] for i in at]):
                found[batch] = self.scores(at[batch]).double().cpu().numpy()
        return found

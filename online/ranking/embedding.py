"""Embeddings of prompts by a pre-trained encoder, without training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online.ranking.batches import by_length, padded
from online.ranking.libraries import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.ranking.inputs import FrozenStates
    from online.ranking.network import Network
    from online.ranking.prompt_tokens import PromptTokens

    Floats = NDArray[np.float64]


class Embedding:
    """Mean of an encoder's last hidden states, as a vector of length 1.

    Results are cached by prompt.

    Parameters
    ----------
    network : Network
        Untrained.
    tokens : PromptTokens
    device : torch.device
    states : FrozenStates, optional
        Cached hidden states of the same encoder's lower layers.
    """

    def __init__(
        self,
        network: Network,
        tokens: PromptTokens,
        device: Any,
        states: FrozenStates | None = None,
    ) -> None:
        self._network, self._tokens, self._device = network, tokens, device
        self._states = states
        self._known: dict[str, Floats] = {}
        network.module.to(device).eval()

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return one row for each prompt."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        ids = self._tokens.encode(new)
        with torch().inference_mode():
            for batch in by_length(ids):
                found = self._means([ids[i] for i in batch]).double().cpu().numpy()
                for i, vector in zip(batch, found, strict=True):
                    self._known[new[i]] = vector / max(np.linalg.norm(vector), 1e-12)
        return np.array([self._known[text] for text in texts])

    def _means(self, rows: list[list[int]]) -> Any:
        if self._states is None:
            tensors = padded(rows, self._tokens.pad, self._device)
            return self._network.mean_hidden(*tensors)
        self._states.add(self._network, rows, self._tokens.pad, self._device)
        hidden, mask = self._states.batch(rows)
        return self._network.mean_hidden_after(hidden, mask, self._states.layers)

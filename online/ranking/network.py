"""The network: an encoder and one linear layer on the vector of the first token."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from online.ranking.libraries import load, quiet_transformers, torch
from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = Any

LAYERED = ("bert", "roberta", "xlm-roberta", "camembert")
"""Model types whose layers can be run one by one (`Network.embed`)."""


@dataclass(frozen=True, slots=True)
class Network:
    """An encoder with a linear layer on the vector of a prompt's first token.

    Attributes
    ----------
    module : torch.nn.ModuleDict
        `encoder` and `head`, with all trained and saved parameters.
    """

    module: Any

    @property
    def encoder(self) -> Any:
        """The pre-trained encoder."""
        return self.module["encoder"]

    @property
    def config(self) -> Any:
        """The encoder's configuration."""
        return self.encoder.config

    @property
    def num_layers(self) -> int:
        """Layers of the encoder."""
        return int(self.config.num_hidden_layers)

    @property
    def is_layered(self) -> bool:
        """Whether the layers can be run one by one."""
        position = getattr(self.config, "position_embedding_type", "absolute")
        return self.config.model_type in LAYERED and position in (None, "absolute")

    def score(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Score a batch.

        Parameters
        ----------
        ids : int64 tensor, shape (n, length)
        mask : int64 tensor, shape (n, length)
            1 for tokens, 0 for padding.

        Returns
        -------
        tensor, shape (n,)
        """
        if self.is_layered:
            return self.score_hidden(self.embed(ids, mask, 0), mask, 0)
        first = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        return self.module["head"](first)[:, 0]

    def embed(self, ids: Tensor, mask: Tensor, layers: int) -> Tensor:
        """Hidden states after the first `layers` layers.

        Returns
        -------
        tensor, shape (tokens, width)
            One row for each token, prompt after prompt, without padding.
        """
        hidden = self.encoder.embeddings(ids)[mask.bool()]
        return self._through(self.encoder.encoder.layer[:layers], hidden, mask)

    def score_hidden(self, hidden: Tensor, mask: Tensor, done: int) -> Tensor:
        """Score from the hidden states after the first `done` layers.

        The last layer is computed for the first token only.
        """
        *inner, last = self.encoder.encoder.layer[done:]
        hidden = self._through(inner, hidden, mask)
        first = self._layer(last, hidden, mask.bool(), first_only=True)
        return self.module["head"](first)[:, 0]

    def mean_hidden(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Mean of the last hidden states over a prompt's tokens; shape (n, width)."""
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return _mean(states * mask[:, :, None], mask)

    def mean_hidden_after(self, hidden: Tensor, mask: Tensor, done: int) -> Tensor:
        """Return the same from the hidden states after the first `done` layers."""
        hidden = self._through(self.encoder.encoder.layer[done:], hidden, mask)
        return _mean(_filled(hidden, mask.bool()), mask)

    def _through(self, layers: Any, hidden: Tensor, mask: Tensor) -> Tensor:
        for layer in layers:
            hidden = self._layer(layer, hidden, mask.bool(), first_only=False)
        return hidden

    def _layer(
        self, layer: Any, hidden: Tensor, mask: Tensor, *, first_only: bool
    ) -> Tensor:
        """One layer, for all tokens or for each prompt's first one."""
        own = layer.attention.self
        queried = hidden
        if first_only:
            length = mask.sum(1)
            queried = hidden[length.cumsum(0) - length]
        query = own.query(queried)
        query = query[:, None] if first_only else _filled(query, mask)
        context = torch().nn.functional.scaled_dot_product_attention(
            self._heads(query),
            self._heads(_filled(own.key(hidden), mask)),
            self._heads(_filled(own.value(hidden), mask)),
            attn_mask=mask[:, None, None, :],
            dropout_p=own.dropout.p if self.module.training else 0.0,
        )
        context = context.transpose(1, 2).flatten(2)
        context = context[:, 0] if first_only else context[mask]
        attended = layer.attention.output(context, queried)
        return layer.output(layer.intermediate(attended), attended)

    def _heads(self, states: Tensor) -> Tensor:
        heads = self.config.num_attention_heads
        return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def network_of(
    encoder: str, layers: int | None = None, revision: str | None = None
) -> Network:
    """Create a network from a pre-trained encoder and a new linear layer.

    Parameters
    ----------
    encoder : str
        Folder, or name on the hub.
    layers : int, optional
        Number of the encoder's first layers to use; all by default.
    revision : str, optional
        Commit of an encoder on the hub; its newest one by default.

    Raises
    ------
    RankingError
        If there is no such encoder, or it has fewer layers.
    """
    with quiet_transformers() as transformers:
        config = _pretrained(transformers.AutoConfig, encoder, revision=revision)
        if layers is not None:
            if not 1 <= layers <= config.num_hidden_layers:
                raise RankingError(
                    f"layers = {layers} but {encoder} has {config.num_hidden_layers}."
                )
            config.num_hidden_layers = layers
        model = _pretrained(
            transformers.AutoModel, encoder, config=config, revision=revision
        )
    return _with_head(model)


def network_from(folder: str, weights: str) -> Network:
    """Restore a saved network from its configuration and its weights."""
    with quiet_transformers() as transformers:
        config = _pretrained(transformers.AutoConfig, folder)
        network = _with_head(transformers.AutoModel.from_config(config))
    try:
        saved = load("safetensors.torch").load_file(weights)
        network.module.load_state_dict(saved)
    except Exception as error:  # the libraries raise many classes
        raise RankingError(
            f"{weights} does not hold the weights of this network: {error}"
        ) from None
    return network


def tokenizer_of(encoder: str, revision: str | None = None) -> Any:
    """Load the tokenizer of an encoder or of a saved ranker."""
    with quiet_transformers() as transformers:
        return _pretrained(transformers.AutoTokenizer, encoder, revision=revision)


def revision_of(encoder: str) -> str | None:
    """Return the commit of an encoder given by its name on the hub.

    None for a folder, which has none.

    Raises
    ------
    RankingError
        If there is no such encoder, or its commit is not known.
    """
    if os.path.isdir(os.path.expanduser(encoder)):
        return None
    with quiet_transformers():
        # The library's own loaders tell no commit; the file's place in the cache does.
        path = _loaded(load("transformers.utils").cached_file, encoder, "config.json")
    parent = Path(path).parent
    if parent.parent.name != "snapshots":
        raise RankingError(
            f"{encoder} cannot be pinned: the commit of {path} is not known; download "
            "the encoder and give its folder."
        )
    return parent.name


def longest_input(network: Network, tokenizer: Any) -> int:
    """Largest number of tokens that the encoder accepts."""
    positions = getattr(network.config, "max_position_embeddings", None)
    limits = [tokenizer.model_max_length, *([positions] if positions else [])]
    # RoBERTa-like models count positions from the padding id + 1.
    reserved = 2 if network.config.model_type in LAYERED[1:] else 0
    return int(min(limits)) - reserved


def _filled(packed: Tensor, mask: Tensor) -> Tensor:
    """Unpack to one row per prompt, padded with zeros; shape (n, length, width)."""
    rows = packed.new_zeros(*mask.shape, packed.shape[-1])
    rows[mask] = packed
    return rows


def _mean(filled: Tensor, mask: Tensor) -> Tensor:
    return filled.sum(1) / mask.sum(1, keepdim=True)


def _with_head(encoder: Any) -> Network:
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None  # not used here
    nn = torch().nn
    head = nn.Linear(encoder.config.hidden_size, 1)
    return Network(nn.ModuleDict({"encoder": encoder, "head": head}))


def _pretrained(kind: Any, name: str, **options: Any) -> Any:
    return _loaded(kind.from_pretrained, name, **options)


def _loaded(read: Callable[..., Any], name: str, *more: str, **options: Any) -> Any:
    """Call a loader of the library, with its errors in one line."""
    name = os.path.expanduser(name)
    looks_like_path = name.startswith((".", os.sep)) or name.count("/") > 1
    if looks_like_path and not os.path.isdir(name):
        raise RankingError(f"{name}: no such folder; an encoder's folder is needed.")
    try:
        return read(name, *more, **options)
    except Exception as error:  # the library raises many classes
        reason = " ".join(str(error).split())[:200]
        raise RankingError(
            f"{name} cannot be loaded as an encoder with its tokenizer, from a folder "
            f"or from the hub: {reason}"
        ) from None

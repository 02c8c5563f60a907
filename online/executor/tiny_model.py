"""A tiny random Llama, for runs that need a real engine but no real answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARY = 256
"""Token ids of the tiny model are below this."""

SPECIAL = ("<unk>", "<s>", "</s>")
"""Token ids 0, 1 and 2."""

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def write_tiny_model(
    folder: Path, max_model_len: int, *, tokenizer: bool = False
) -> Path:
    """Write the configuration of a two-layer Llama of width 64; return its folder.

    There are no weights: the engine uses random ones (`load_format="dummy"`).

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    max_model_len : int
        Longest prompt and answer together, in tokens.
    tokenizer : bool
        Whether to write a tokenizer with a chat template: one token per character.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": max_model_len,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    _write(folder / "config.json", config)
    if tokenizer:
        _write(folder / "tokenizer.json", _tokenizer())
        _write(folder / "tokenizer_config.json", _tokenizer_config(max_model_len))
    return folder


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _tokenizer() -> dict[str, Any]:
    """One token per printable ASCII character; the other ids are other letters."""
    letters = ["\n", *(chr(code) for code in range(32, 127))]
    other = (chr(code) for code in range(0xA1, 0xA1 + VOCABULARY))
    tokens = [*SPECIAL, *letters, *other][:VOCABULARY]
    special = [
        {
            "id": i, "content": token, "single_word": False, "lstrip": False,
            "rstrip": False, "normalized": False, "special": True,
        }
        for i, token in enumerate(SPECIAL)
    ]  # fmt: skip
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": r"[\s\S]"},
            "behavior": "Isolated",
            "invert": False,
        },
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {
            "type": "WordLevel",
            "vocab": {token: i for i, token in enumerate(tokens)},
            "unk_token": SPECIAL[0],
        },
    }


def _tokenizer_config(max_model_len: int) -> dict[str, Any]:
    unknown, begin, end = SPECIAL
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": unknown,
        "bos_token": begin,
        "eos_token": end,
        "model_max_length": max_model_len,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }

"""A tiny random encoder of BERT's kind, and rankers and rows for tests."""

from __future__ import annotations

import json

import numpy as np

from online.ranking.folder import write_folder
from online.ranking.length_calibration import calibrate
from online.ranking.network import network_of, tokenizer_of

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e", "f", "g",
    "h", "short", "long", "very", "write", "list", "what", "is", "the", "story", "poem",
    "yes", "no", "essay", "about", "cats", "dogs", ".", "?", "!", ",", *"0123456789",
]  # fmt: skip


def write_encoder(folder, *, layers=2, width=16, positions=64):
    """Write a random encoder with a word tokenizer; return its folder as text."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    raw = Tokenizer(
        models.WordPiece(
            {word: i for i, word in enumerate(WORDS)},
            unk_token="[UNK]",
            max_input_chars_per_word=100,
        )
    )
    raw.normalizer = normalizers.BertNormalizer()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), WORDS,
            strict=False)
    )  # fmt: skip
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, model_max_length=positions, **special
    )
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=width, intermediate_size=2 * width,
        num_hidden_layers=layers, num_attention_heads=2,
        max_position_embeddings=positions,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
        # The usual start is so small that every prompt would score about the same.
        for weight in model.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.3)
        model.save_pretrained(folder)
    return str(folder)


def write_hub_cache(cache, name, revisions):
    """Write a hub's cache with an encoder per revision; the last one is the newest.

    Each has one layer more than the one before.
    """
    model = cache / f"models--{name.replace('/', '--')}"
    for layers, revision in enumerate(revisions, 1):
        write_encoder(model / "snapshots" / revision, layers=layers)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(revisions[-1])


def write_ranker(encoder, folder, *, max_tokens=16, **changes):
    """Write an untrained ranker; `changes` are to its card."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = network_of(encoder)
    calibration = calibrate(np.linspace(-1, 1, 50), np.arange(1, 51))
    card = {
        "settings": {"truncation": "head-tail"},
        "max_tokens": max_tokens,
        "calibration": calibration.as_dict(),
        **changes,
    }
    write_folder(folder, network, tokenizer_of(encoder), card)
    return folder


def prompts(n, seed=0):
    """Random prompts of known words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[5:], rng.integers(1, 30))) for _ in range(n)]


def learnable_rows(n, seed=0):
    """Prompts whose words tell the length, roughly: `long` makes it longer."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        long = int(rng.integers(0, 5))
        words = ["long"] * long + list(rng.choice(WORDS[5:13], 4)) + list(f"{i:04d}")
        length = max(1, int(20 * 2**long * rng.uniform(0.9, 1.1)))
        rows.append({"prompt": " ".join(words), "response_tokens": length})
    return rows


def write_rows(path, rows):
    """Write rows as JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path

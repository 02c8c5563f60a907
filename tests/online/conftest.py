"""One tiny encoder and one trained ranker for the tests of ranking and commands."""

from __future__ import annotations

import pytest

from online.ranking.rows import Prompts
from online.ranking.training import train
from online.ranking.training_settings import TrainingSettings
from tests.online.ranking.tiny import (
    learnable_rows,
    write_encoder,
    write_hub_cache,
    write_rows,
)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def rows_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return write_rows(folder / "rows.jsonl", learnable_rows(120))


@pytest.fixture(scope="session")
def learnable():
    """Prompts of which an untrained network ranks few, and a trained one nearly all."""
    rows = learnable_rows(120)
    import numpy as np

    return Prompts(
        tuple(row["prompt"] for row in rows),
        np.array([float(row["response_tokens"]) for row in rows]),
    )


@pytest.fixture(scope="session")
def settings(encoder):
    return TrainingSettings(
        encoder=encoder, epochs=4, learning_rate=1e-2, max_tokens=24, batch_size=16
    )


@pytest.fixture
def one_thread():
    """Sums of as many parts as in every other test: engines change the number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def trained(learnable, settings):
    return train(learnable, settings)


@pytest.fixture(scope="session")
def ranker_folder(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranker") / "ranker"
    trained.save(folder)
    return folder


OLD, NEW = "a" * 40, "b" * 40


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub's cache without network: the model org/tiny at two commits."""
    pytest.importorskip("torch")
    constants = pytest.importorskip("huggingface_hub").constants
    write_hub_cache(tmp_path / "hub", "org/tiny", [OLD, NEW])
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub" / "models--org--tiny"

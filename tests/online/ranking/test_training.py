"""Training: it learns, it repeats, it goes on after a kill."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from online.kendall import tau_b
from online.ranking import RankingError, evaluation, load_ranker
from online.ranking.folder import CARD, WEIGHTS, read_card, seen_prompts
from online.ranking.inputs import FrozenStates
from online.ranking.rows import Prompts, digest
from online.ranking.split import split
from online.ranking.training import train
from online.ranking.training_settings import TrainingSettings

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def trained(learnable, settings):
    """Trained here: engines that ran in this process change how torch adds up."""
    torch.set_num_threads(1)
    return train(learnable, settings)


@pytest.fixture(scope="module")
def ranker_folder(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "ranker"
    trained.save(folder)
    return folder


@pytest.mark.parametrize("loss", ["pairwise", "pointwise", "listwise"])
def test_every_loss_learns(learnable, settings, loss):
    """Far better than chance on prompts that it never saw."""
    training = train(learnable, replace(settings, loss=loss, epochs=6))
    assert training.card["tau_b"]["test"] > 0.5
    assert training.card["history"][-1]["loss"] < training.card["history"][0]["loss"]


def test_what_the_card_says(trained, learnable, settings):
    """Counts, settings, versions, and a tau_b that can be computed again."""
    card = trained.card
    parts = split(learnable.text, settings.seed)
    assert card["trained_on"]["train_prompts"] == len(parts.train)
    assert card["trained_on"]["test_prompts"] == len(parts.test)
    assert card["trained_on"]["informative_pairs"] > 0
    assert card["settings"]["delta"] == 0.2
    assert card["encoder_revision"] is None  # a folder has none
    assert {"sortedf", "torch", "transformers"} == set(card["versions"])
    json.dumps(card)
    test = learnable.take(parts.test)
    scores = trained.ranker().score(test.text)
    assert scores == pytest.approx(trained.test_scores, abs=1e-5)
    assert card["tau_b"]["test"] == pytest.approx(tau_b(scores, test.length))
    best = max(card["history"], key=lambda epoch: epoch["tau_b"])
    assert card["tau_b"]["validation"] == best["tau_b"]
    assert card["best_epoch"] == best["epoch"]


def test_the_saved_folder(trained, ranker_folder, learnable):
    """Scores as before; what was seen is known by digests only."""
    loaded = load_ranker(ranker_folder)
    texts = learnable.text[:40]
    assert loaded.score(texts) == pytest.approx(trained.ranker().score(texts), abs=1e-5)
    parts = trained.parts
    seen = seen_prompts(ranker_folder)
    assert len(seen) == len(parts.train) + len(parts.validation)
    assert not {digest(learnable.text[i]) for i in parts.test} & seen
    for path in ranker_folder.iterdir():
        assert learnable.text[0].encode() not in path.read_bytes()


@pytest.mark.slow
def test_same_seed_same_ranker(trained, learnable, settings):
    """Another run is the same to the last bit; another seed is not."""
    rng_before = torch.random.get_rng_state()
    again = train(learnable, settings)
    assert again.test_scores.tolist() == trained.test_scores.tolist()
    assert again.card == trained.card
    assert torch.equal(torch.random.get_rng_state(), rng_before)
    other = train(learnable, replace(settings, seed=1, epochs=1))
    assert other.card["history"][0] != trained.card["history"][0]


class KilledError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [1, 9, 20])
def test_a_killed_training_goes_on(trained, learnable, settings, tmp_path, kill_at):
    """In the middle of whichever epoch: the end is as if nothing had happened."""
    checkpoint = tmp_path / "ranker.checkpoint"

    def kill(done, total):
        if done == kill_at:
            raise KilledError

    with pytest.raises(KilledError):
        train(learnable, settings, checkpoint=checkpoint, on_step=kill)
    steps, epochs = [], []
    again = train(
        learnable,
        settings,
        checkpoint=checkpoint,
        on_step=lambda done, total: steps.append(done),
        on_epoch=lambda epoch: epochs.append(epoch["epoch"]),
    )
    assert again.test_scores.tolist() == trained.test_scores.tolist()
    assert again.card == trained.card
    per_epoch = -(-len(trained.parts.train) // settings.batch_size)
    assert steps[0] == (kill_at - 1) // per_epoch * per_epoch + 1
    assert epochs[-1] == len(trained.card["history"])


def test_a_finished_training_is_not_repeated(learnable, settings, tmp_path):
    """Its checkpoint has all of it."""
    checkpoint = tmp_path / "c"
    first = train(learnable, replace(settings, epochs=1), checkpoint=checkpoint)
    steps = []
    again = train(
        learnable,
        replace(settings, epochs=1),
        checkpoint=checkpoint,
        on_step=lambda *step: steps.append(step),
    )
    assert steps == []
    assert again.test_scores.tolist() == first.test_scores.tolist()


def test_a_checkpoint_of_another_training(learnable, settings, tmp_path):
    """Other settings, other data, or no checkpoint at all."""
    checkpoint = tmp_path / "ranker.checkpoint"
    short = replace(settings, epochs=1)
    train(learnable, short, checkpoint=checkpoint)
    for other, data in (
        (replace(short, delta=0.3), learnable),
        (short, learnable.take(range(100))),
    ):
        with pytest.raises(RankingError, match="checkpoint of another training"):
            train(data, other, checkpoint=checkpoint)
    checkpoint.write_bytes(b"nonsense")
    with pytest.raises(RankingError, match="is no checkpoint"):
        train(learnable, short, checkpoint=checkpoint)


def test_training_ends_when_validation_gets_no_better(learnable, settings):
    """After as many epochs as patience says; the best epoch's weights are kept."""
    training = train(learnable, replace(settings, epochs=40, patience=2))
    taus = [epoch["tau_b"] for epoch in training.card["history"]]
    best = training.card["best_epoch"]
    assert len(taus) == best + 2 < 40
    assert taus[best - 1] == max(taus)


def test_frozen_layers(learnable, settings):
    """They stay as they are, cost nothing after the first time, and still it learns."""
    states = FrozenStates(1)
    frozen = replace(settings, frozen_layers=1)
    training = train(learnable, frozen, states=states)
    assert training.card["tau_b"]["test"] > 0.5
    again = train(learnable, frozen, states=states)
    assert again.test_scores == pytest.approx(training.test_scores, abs=1e-5)
    from online.ranking.network import network_of

    fresh = network_of(settings.encoder).module.state_dict()
    lower = ("encoder.embeddings.", "encoder.encoder.layer.0.")
    for name, weight in training.network.module.state_dict().items():
        same = torch.equal(weight, fresh[name])
        assert same == name.startswith(lower) or "position_ids" in name


def test_frozen_states_are_those_of_the_whole_network(learnable, settings):
    """Scores by way of kept states equal scores from the text."""
    training = train(learnable, replace(settings, frozen_layers=1, epochs=1))
    test = learnable.take(training.parts.test)
    scores = training.ranker().score(test.text)
    assert scores == pytest.approx(training.test_scores, abs=1e-5)


def test_no_test_part(learnable, settings):
    """All but validation is for training, and nothing is claimed."""
    training = train(learnable, replace(settings, test=0.0, epochs=1))
    assert training.card["tau_b"]["test"] is None
    assert len(training.parts.train) + len(training.parts.validation) == 120


def test_too_many_frozen_layers(learnable, settings):
    """One must stay free; and states of another depth are another's."""
    with pytest.raises(RankingError, match="frozen_layers = 2 but"):
        train(learnable, replace(settings, frozen_layers=2))
    with pytest.raises(ValueError, match="states are of 2 layers"):
        train(learnable, replace(settings, frozen_layers=1), states=FrozenStates(2))


def test_frozen_states_that_need_too_much_memory(learnable, settings, monkeypatch):
    """Said before it happens."""
    from online.ranking import inputs

    monkeypatch.setattr(inputs, "MOST_STATE_BYTES", 1000)
    with pytest.raises(RankingError, match=r"would keep .* GiB of hidden states"):
        train(learnable, replace(settings, frozen_layers=1))


def test_nothing_to_learn(settings):
    """All answers equally long, or too much alike."""
    texts = tuple(f"a {i}" for i in range(100))
    same = Prompts(texts, np.full(100, 7.0))
    with pytest.raises(RankingError, match="all 100 answers have 7 tokens"):
        train(same, settings)
    alike = Prompts(texts, 1000 + np.arange(100.0))
    with pytest.raises(RankingError, match="nothing can be learned"):
        train(alike, settings)
    with pytest.raises(RankingError, match="too few to split"):
        train(Prompts(texts[:3], np.arange(1.0, 4.0)), settings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "triplet"}, "one of: listwise, pairwise, pointwise"),
        ({"delta": 1.0}, "delta = 1.0 but must be from 0 to below 1"),
        ({"margin": 0.0}, "margin = 0.0 but must be a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate = nan"),
        ({"truncation": "middle"}, "one of: head-tail, head, tail"),
        ({"epochs": 0}, "epochs = 0 but must be an integer from 1"),
        ({"batch_size": 1}, "batch_size = 1 but must be an integer from 2"),
        ({"max_tokens": 3}, "max_tokens = 3"),
    ],
)
def test_bad_settings(changes, message):
    """Each named, with what is allowed."""
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**changes)


def test_the_folder_has_all_and_no_more(ranker_folder):
    """Weights, configuration, tokenizer, card, digests."""
    names = {path.name for path in ranker_folder.iterdir()}
    assert {WEIGHTS, "config.json", "tokenizer.json", CARD, "seen_prompts.txt"} <= names
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pkl"))]
    assert read_card(ranker_folder)["max_tokens"] == 24


def test_an_encoder_of_the_hub_is_pinned(hub, learnable, settings, tmp_path):
    """The card names the commit, which rivals use and a checkpoint keeps.

    A name alone would give another encoder as soon as the hub's newest one changes.
    """
    (hub / "refs" / "main").write_text("a" * 40)
    short = replace(settings, encoder="org/tiny", epochs=1)
    checkpoint = tmp_path / "ranker.checkpoint"
    training = train(learnable, short, checkpoint=checkpoint)
    training.save(tmp_path / "ranker")
    assert read_card(tmp_path / "ranker")["encoder_revision"] == "a" * 40
    (hub / "refs" / "main").write_text("b" * 40)
    with pytest.raises(RankingError, match="commit of the encoder"):
        train(learnable, short, checkpoint=checkpoint)
    restored = load_ranker(tmp_path / "ranker").score(["what is a cat ?"])
    assert restored == pytest.approx(training.ranker().score(["what is a cat ?"]))


def test_rivals_use_the_encoder_of_the_card(hub, learnable, settings, monkeypatch):
    """With the commit of the training, though the hub has a newer one."""
    (hub / "refs" / "main").write_text("a" * 40)
    training = train(learnable, replace(settings, encoder="org/tiny", epochs=1))
    (hub / "refs" / "main").write_text("b" * 40)
    layers = []
    monkeypatch.setattr(
        evaluation, "Embedding", lambda network, *_: layers.append(network.num_layers)
    )
    monkeypatch.setattr(evaluation, "RIVALS", {})
    assert evaluation.rival_tau_b(training) == {}
    assert layers == [1]

"""Cheap rivals, and figures about rankers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.kendall import tau_b
from online.ranking import RankingError, load_ranker, rivals
from online.ranking.embedding import Embedding
from online.ranking.evaluation import evaluate, pairs_right, rival_tau_b, unseen
from online.ranking.features import features
from online.ranking.folder import seen_prompts
from online.ranking.inputs import FrozenStates
from online.ranking.network import network_of, tokenizer_of
from online.ranking.prompt_tokens import PromptTokens
from online.ranking.rivals import NEIGHBOURS, RIVALS
from online.ranking.rows import Prompts
from tests.online.ranking import naive
from tests.online.ranking.tiny import prompts

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def embedding(encoder):
    tokens = PromptTokens(tokenizer_of(encoder), 24)
    return Embedding(network_of(encoder), tokens, CPU)


def parts(prompts_):
    n = len(prompts_)
    cuts = (range(n // 2), range(n // 2, 3 * n // 4), range(3 * n // 4, n))
    return [prompts_.take(list(part)) for part in cuts]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RIVALS))
def test_every_rival_learns_what_is_easy(learnable, embedding, name):
    """Long prompts have long answers here, and some words say the same."""
    train, validation, test = parts(learnable)
    score = RIVALS[name](train, validation, embedding, 0)
    assert tau_b(score(test.text), test.length) > 0.3
    again = RIVALS[name](train, validation, embedding, 0)
    assert score(test.text).tolist() == again(test.text).tolist()


def test_prompt_length_can_speak_against(learnable, embedding):
    """Where long prompts have short answers, training says so."""
    falling = Prompts(learnable.text, 1e6 / learnable.length)
    train, validation, test = parts(falling)
    score = RIVALS["prompt-length"](train, validation, embedding, 0)
    assert tau_b(score(test.text), test.length) > 0.3


def test_neighbours_are_those_by_cosine(learnable, embedding):
    """One by one: the nearest, weighted by their cosines."""
    train, validation, test = parts(learnable)
    score = RIVALS["neighbours"](train, validation, embedding, 0)(test.text[:5])
    vectors = embedding(train.text)

    def slow(text, count):
        cosines = [float(embedding([text])[0] @ vector) for vector in vectors]
        nearest = sorted(range(len(cosines)), key=lambda i: -cosines[i])[:count]
        weights = [max(cosines[i], 1e-6) for i in nearest]
        logs = [np.log(train.length[i]) for i in nearest]
        return np.average(logs, weights=weights)

    found = [
        np.allclose(score, [slow(text, count) for text in test.text[:5]])
        for count in NEIGHBOURS
    ]
    assert any(found)


def test_neighbours_in_parts(learnable, embedding, monkeypatch):
    """A small table at a time, and the same scores."""
    train, validation, test = parts(learnable)
    whole = RIVALS["neighbours"](train, validation, embedding, 0)(test.text)
    monkeypatch.setattr(rivals, "MOST_COSINES", 3 * len(train))
    cut = RIVALS["neighbours"](train, validation, embedding, 0)(test.text)
    assert cut == pytest.approx(whole)


def test_embeddings(embedding, encoder):
    """Of length 1, and the same from frozen states as from the text."""
    texts = prompts(20)
    vectors = embedding(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(20))
    tokens = PromptTokens(tokenizer_of(encoder), 24)
    by_states = Embedding(network_of(encoder), tokens, CPU, FrozenStates(1))
    assert by_states(texts) == pytest.approx(vectors, abs=1e-5)


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_features_of_any_text(texts):
    """Finite, and one row each."""
    table = features(texts)
    assert len(table) == len(texts)
    assert np.isfinite(table).all()


def test_features_of_huge_texts():
    """A million letters, and numbers of thousands of digits."""
    table = features(["long " * 200_000, "9" * 5000])
    assert np.isfinite(table).all()


def test_evaluation(ranker_folder, trained, learnable):
    """Figures on what was not seen, each as it can be counted by hand."""
    loaded = load_ranker(ranker_folder)
    test = unseen(learnable, seen_prompts(ranker_folder))
    assert set(test.text) == {learnable.text[i] for i in trained.parts.test}
    found = evaluate(loaded, test)
    scores = loaded.score(test.text)
    assert found.tau_b == pytest.approx(naive.tau_b(scores, test.length))
    assert found.tau_b_low <= found.tau_b <= found.tau_b_high
    letters = [len(text) for text in test.text]
    expected = naive.tau_b(letters, test.length)
    assert found.prompt_length_tau_b == pytest.approx(expected)
    pairs = naive.pairs(test.length, 0.2)
    right = sum(scores[i] > scores[j] for i, j in pairs)
    assert found.pairs_right == pytest.approx(right / len(pairs))
    assert 0.3 < found.median_ratio < 3
    assert 0.5 < found.below_p90 <= 1


def test_nothing_left_to_judge_by(ranker_folder, trained, learnable):
    """All of the data was for training."""
    train = learnable.take(trained.parts.train)
    with pytest.raises(RankingError, match="too few are left to evaluate"):
        unseen(train, seen_prompts(ranker_folder))


def test_no_informative_pair():
    """Then no share of them is right."""
    assert pairs_right(np.array([1.0, 2.0]), np.array([10.0, 11.0])) is None


def test_rivals_of_a_training(trained):
    """On the same test part as the ranker."""
    found = rival_tau_b(trained)
    assert set(found) == set(RIVALS)
    letters = [len(trained.prompts.text[i]) for i in trained.parts.test]
    length = trained.prompts.length[trained.parts.test]
    assert found["prompt-length"] == pytest.approx(naive.tau_b(letters, length))

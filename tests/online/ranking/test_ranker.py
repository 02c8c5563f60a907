"""Scores of a saved ranker: order, cache, token ids, folders that are none."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from online.ranking import Ranker, RankingError, load_ranker, ranker
from online.ranking.folder import CARD, WEIGHTS, read_card, write_folder
from online.ranking.network import network_of, tokenizer_of
from sortedf.errors import MissingExtraError, OutputError
from tests.online.ranking.tiny import prompts, write_ranker


@pytest.fixture
def folder(encoder, tmp_path):
    return write_ranker(encoder, tmp_path / "ranker")


@pytest.fixture
def loaded(folder):
    return load_ranker(folder)


def test_scores_come_in_the_prompts_order(loaded, folder):
    """Whatever the batches are, and however often a prompt is there."""
    texts = prompts(150)
    scores = loaded.score(texts)
    assert scores.dtype == np.float64
    assert scores.shape == (150,)
    assert len(set(scores.tolist())) > 100
    shuffled = np.random.default_rng(1).permutation(150)
    again = Ranker.load(folder).score([texts[i] for i in shuffled])
    assert again == pytest.approx(scores[shuffled], abs=1e-5)
    assert loaded.score([]).shape == (0,)


@pytest.fixture
def seen(monkeypatch):
    """Numbers of prompts that the network sees, call by call."""
    numbers = []
    real = ranker.score_all

    def counting(network, ids, *rest):
        numbers.append(len(ids))
        return real(network, ids, *rest)

    monkeypatch.setattr(ranker, "score_all", counting)
    return numbers


def test_known_prompts_are_looked_up(loaded, seen):
    """The network sees each prompt once."""
    texts = prompts(20)
    first = loaded.score([*texts, *texts])
    assert loaded.score(texts[:7]).tolist() == first[:7].tolist()
    loaded.score([*texts, "a b c d a"])
    assert seen == [len(set(texts)), 1]


def test_the_cache_is_bounded(loaded, seen, monkeypatch):
    """The oldest scores go: seven of twelve are computed again."""
    monkeypatch.setattr(ranker, "CACHED", 5)
    texts = [f"{text} a b c" for text in prompts(12)]
    assert len(set(texts)) == 12
    scores = loaded.score(texts)
    assert loaded.score(texts[-5:]).tolist() == scores[-5:].tolist()
    assert loaded.score(texts[:7]) == pytest.approx(scores[:7], abs=1e-6)
    assert seen == [12, 7]


def test_lengths_follow_scores(loaded):
    """Longest last, as the calibration of the folder says."""
    assert loaded.lengths([-1.0, 0.0, 1.0]) == pytest.approx([3, 25.5, 48], rel=0.1)
    scores = np.sort(loaded.score(prompts(30)))
    assert (np.diff(loaded.lengths(scores)) >= 0).all()
    assert (loaded.lengths(scores, 0.9) >= loaded.lengths(scores, 0.5)).all()


def test_bad_prompts(loaded):
    """Empty ones, and one text where several are meant."""
    with pytest.raises(RankingError, match="prompt 1 is empty"):
        loaded.score(["a", " "])
    with pytest.raises(TypeError, match="one str"):
        loaded.score("a b")


def test_no_such_device(folder):
    """torch's own words are long."""
    with pytest.raises(RankingError, match="device 'tpu' cannot be used here"):
        load_ranker(folder, device="tpu")


def test_folders_that_are_none(tmp_path, encoder):
    """A missing one, an empty one, an encoder."""
    with pytest.raises(RankingError, match="is no folder: a folder written by"):
        load_ranker(tmp_path / "none")
    for path in (tmp_path, encoder):
        with pytest.raises(RankingError, match="holds no ranker"):
            load_ranker(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "no data card of format 1"),
        ('{"format": 2}', "no data card of format 1"),
        ('{"format": 1}', "has no calibration"),
    ],
)
def test_broken_cards(folder, text, message):
    """Whatever is in its place."""
    (folder / CARD).write_text(text, encoding="utf-8")
    with pytest.raises(RankingError, match=message):
        load_ranker(folder)


def test_broken_calibration(folder):
    """A card that was edited by hand."""
    card = read_card(folder)
    card["calibration"] = {"quantiles": 3}
    (folder / CARD).write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(RankingError, match="broken calibration"):
        load_ranker(folder)


def test_broken_weights(folder):
    """Cut off in the middle, or gone."""
    weights = folder / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(RankingError, match="does not hold the weights"):
        load_ranker(folder)
    weights.unlink()
    with pytest.raises(RankingError, match="does not hold the weights"):
        load_ranker(folder)


def test_another_tokenizer_in_the_folder(folder):
    """It would give other ids for the same words, and scores without a meaning."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    vocabulary["long"], vocabulary["short"] = vocabulary["short"], vocabulary["long"]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RankingError, match="tokenizer is not the one"):
        load_ranker(folder)


def test_a_tokenizer_that_is_too_large(encoder, tmp_path):
    """Ids that the encoder has no vectors for."""
    tokenizer = tokenizer_of(encoder)
    tokenizer.add_tokens(["more"])
    target = tmp_path / "ranker"
    card = read_card(write_ranker(encoder, tmp_path / "first"))
    write_folder(target, network_of(encoder), tokenizer, card)
    with pytest.raises(RankingError, match="do not match"):
        load_ranker(target)


def test_writing_replaces_a_ranker_only(encoder, tmp_path):
    """A folder with anything else in it stays as it is."""
    target = write_ranker(encoder, tmp_path / "ranker")
    write_ranker(encoder, target)
    load_ranker(target)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("all my work", encoding="utf-8")
    with pytest.raises(OutputError, match="is not empty and holds no ranker"):
        write_ranker(encoder, other)
    with pytest.raises(OutputError, match="it is a file"):
        write_ranker(encoder, other / "thesis.txt")
    assert (other / "thesis.txt").read_text(encoding="utf-8") == "all my work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "ranker"]


def test_a_failed_write_leaves_nothing(encoder, tmp_path):
    """Not a half folder, and the old one is whole."""
    target = write_ranker(encoder, tmp_path / "ranker")
    with pytest.raises(TypeError):
        write_ranker(encoder, target, calibration_=object())
    load_ranker(target)
    assert [path.name for path in tmp_path.iterdir()] == ["ranker"]


def test_the_extra_is_named(monkeypatch):
    """What to install where torch is missing."""
    from online.ranking import libraries

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(libraries.importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"needs torch: pip .*sortedf\[rank\]"):
        libraries.torch()
    with pytest.raises(MissingExtraError, match="needs scikit-learn"):
        libraries.load("sklearn.ensemble")


def test_a_folder_can_be_moved(folder, tmp_path):
    """Nothing in it points to where it was."""
    text = prompts(3)
    scores = load_ranker(folder).score(text)
    moved = shutil.move(folder, tmp_path / "moved")
    assert load_ranker(moved).score(text).tolist() == scores.tolist()

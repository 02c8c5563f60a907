"""Truncation, empty prompts, and prompts of a million letters."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online.ranking import RankingError
from online.ranking.network import tokenizer_of
from online.ranking.prompt_tokens import TRUNCATIONS, PromptTokens, cut
from tests.online.ranking.tiny import WORDS


@given(st.lists(st.integers()), st.integers(1, 12), st.sampled_from(TRUNCATIONS))
def test_cut(ids, room, truncation):
    """As many as there is room for, from the ends that were asked for."""
    kept = cut(ids, room, truncation)
    assert len(kept) == min(len(ids), room)
    if len(ids) > room:
        head = {"head": room, "tail": 0, "head-tail": room - room // 2}[truncation]
        assert kept[:head] == ids[:head]
        assert kept[head:] == ids[len(ids) - (room - head) :]


@pytest.fixture
def tokens(encoder):
    return PromptTokens(tokenizer_of(encoder), max_tokens=10)


def test_head_and_tail_of_a_long_prompt(tokens):
    """Both ends are there, between the tokens that BERT wants."""
    text = "write a story " + "very " * 50 + "about cats ."
    words = [WORDS[i] for i in tokens.encode([text])[0]]
    assert " ".join(words) == "[CLS] write a story very very about cats . [SEP]"


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_long_texts_are_read_at_their_ends_only(encoder, truncation):
    """The same tokens as from the whole text, which is not split into tokens."""
    cutter = PromptTokens(tokenizer_of(encoder), 10, truncation)
    text = "write a list " + "long " * 3000 + "about dogs ?"
    whole = cutter.tokenizer(text, add_special_tokens=False, verbose=False)
    assert cutter.encode([text]) == [cutter.wrap(whole["input_ids"])]


def test_a_million_letters_take_no_time(tokens):
    """Far less than a tokenizer would need for all of them."""
    texts = ["long " * 200_000, "x" * 1_000_000, " " * 999_999 + "a"]
    began = time.perf_counter()
    ids = tokens.encode(texts)
    assert time.perf_counter() - began < 2
    assert all(len(row) <= 10 for row in ids)


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_empty_prompts(tokens, text):
    """Refused, by number."""
    with pytest.raises(RankingError, match="prompt 1 is empty"):
        tokens.encode(["a", text])


def test_half_a_surrogate_pair(tokens):
    """Text that no encoder can take."""
    with pytest.raises(RankingError, match=r"prompt 0: '\\ud800' at 2"):
        tokens.encode(["a \ud800"])


def test_no_text(tokens):
    """A type error that says which."""
    with pytest.raises(TypeError, match="prompt 0 is int"):
        tokens.encode([5])


def test_bad_options(encoder):
    """Unknown truncation, and no room for a token."""
    tokenizer = tokenizer_of(encoder)
    with pytest.raises(RankingError, match="head-tail, head, tail"):
        PromptTokens(tokenizer, 10, "middle")
    with pytest.raises(RankingError, match="at least 4"):
        PromptTokens(tokenizer, 3)


def test_a_tokenizer_without_cls(encoder):
    """Only BERT's kind has the token whose vector is read."""
    tokenizer = tokenizer_of(encoder)
    tokenizer.cls_token = None
    with pytest.raises(RankingError, match="no cls_token_id"):
        PromptTokens(tokenizer, 10)

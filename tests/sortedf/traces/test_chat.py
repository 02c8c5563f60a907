"""Texts are counted, where a format has texts instead of lengths."""

from __future__ import annotations

import json
import sys

import pytest

from sortedf.errors import MissingExtraError, TraceError
from sortedf.traces import read_trace
from tests.sortedf.traces.files import count_words, put

TALK = [
    {"from": "human", "value": "how are you"},
    {"from": "gpt", "value": "well"},
    {"from": "human", "value": "good"},
    {"from": "gpt", "value": "indeed it is"},
]


def batch(**body):
    request = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions"}
    return json.dumps(request | {"body": body}) + "\n"


def refusal(path, tokenizer=count_words) -> str:
    with pytest.raises(TraceError) as caught:
        read_trace(path, tokenizer=tokenizer)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{path}", path.name)


def test_sharegpt_counts_the_first_human_turn_and_its_answer(tmp_path):
    """What comes before and after is left out."""
    system = {"from": "system", "value": "be kind"}
    talks = [{"id": "a", "conversations": TALK}, {"conversations": [system, *TALK]}]
    for content in (json.dumps(talks), "\n".join(map(json.dumps, talks))):
        trace = read_trace(put(tmp_path, content), tokenizer=count_words)
        assert trace.source == "ShareGPT"
        assert (trace.prefill.tolist(), trace.decode.tolist()) == ([3, 3], [1, 1])


@pytest.mark.parametrize(
    "turns",
    [[], TALK[:1], TALK[1:2], [TALK[0], TALK[2]], [{"from": "gpt", "value": ""}]],
)
def test_a_talk_without_prompt_and_answer_is_refused(tmp_path, turns):
    """Leaving it out in silence would change the trace."""
    content = json.dumps([{"conversations": TALK}, {"conversations": turns}])
    assert refusal(put(tmp_path, content)) == (
        "trace.dat: item 2: conversations has no human turn with a gpt turn after it, "
        "which are the prompt and the answer; take it out of the file."
    )


@pytest.mark.parametrize("turns", [5, None, ["x"], [{"from": "human"}]])
def test_turns_of_the_wrong_kind_are_refused(tmp_path, turns):
    """A turn has a speaker and a text."""
    content = json.dumps([{"conversations": turns}])
    assert "item 1: conversations must be a list" in refusal(put(tmp_path, content))


def test_an_empty_answer_is_refused(tmp_path):
    """It counts 0 tokens."""
    talk = [TALK[0], {"from": "gpt", "value": " "}]
    content = json.dumps([{"conversations": talk}])
    assert "item 1: tokens of the answer = 0 but" in refusal(put(tmp_path, content))


def test_a_batch_counts_its_prompts_and_takes_the_limit_as_the_answer(tmp_path):
    """Messages, parts of messages, bare prompts and token ids."""
    parts = [{"type": "text", "text": "d e"}, {"type": "text", "text": "f"}]
    messages = [
        {"role": "system", "content": "a b"},
        {"role": "user", "content": "c"},
        {"role": "user", "content": parts},
    ]
    content = (
        batch(messages=messages, max_tokens=7)
        + batch(prompt="a b", max_completion_tokens=3, max_tokens=9)
        + batch(prompt=[5, 6, 7, 8], max_tokens=9)
    )
    trace = read_trace(put(tmp_path, content), tokenizer=count_words)
    assert trace.source == "OpenAI batch"
    assert (trace.prefill.tolist(), trace.decode.tolist()) == ([6, 2, 4], [7, 3, 9])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"prompt": "a"}, "body has neither max_completion_tokens nor max_tokens"),
        ({"max_tokens": 5}, "body needs messages (a list of messages), or prompt"),
        ({"prompt": ["a", "b"], "max_tokens": 5}, "body needs messages (a list"),
        ({"prompt": "a", "max_tokens": 5, "n": 2}, "body.n = 2 but must be 1"),
        ({"prompt": "a", "max_tokens": "5"}, 'the answer\'s token limit = "5" but'),
        ({"prompt": "a", "max_tokens": 0}, "the answer's token limit = 0 but"),
        ({"prompt": "", "max_tokens": 5}, "tokens of the prompt = 0 but"),
        ({"messages": [], "max_tokens": 5}, "body.messages must be a list"),
        ({"messages": [{}], "max_tokens": 5}, "body.messages[0].content must be"),
    ],
)
def test_a_batch_line_that_lacks_something_is_refused(tmp_path, body, message):
    """With its line and the name of what is missing."""
    path = put(tmp_path, batch(prompt="x", max_tokens=1) + batch(**body))
    assert f"trace.dat: line 2: {message}" in refusal(path)


def test_a_body_that_is_no_object_is_refused(tmp_path):
    """It holds the parameters of a request."""
    assert "body must be an object" in refusal(put(tmp_path, '{"body": 5}'))


def test_texts_without_a_tokenizer_are_refused(tmp_path):
    """With the name of what is needed."""
    path = put(tmp_path, batch(prompt="x", max_tokens=1))
    assert refusal(path, None) == (
        "trace.dat: line 1: OpenAI batch holds texts, so a tokenizer is needed to "
        "count their tokens: give a tokenizer.json or its folder."
    )


def test_token_ids_need_no_tokenizer(tmp_path):
    """They are counted already."""
    path = put(tmp_path, batch(prompt=[1, 2], max_tokens=1))
    assert read_trace(path).prefill.tolist() == [2]


def test_prompts_that_begin_alike_share_their_blocks(tmp_path):
    """By token ids: 20 in common are one block of 16; what follows is not shared."""
    first, other = list(range(40)), [*range(20), *range(100, 130)]
    lines = [batch(prompt=prompt, max_tokens=1) for prompt in (first, other, first)]
    ids = read_trace(put(tmp_path, "".join(lines))).prefix_ids
    assert ids is not None
    assert ids.tokens_per_id == 16
    rows = [ids[i].tolist() for i in range(3)]
    assert rows[0] == rows[2]
    assert [len(row) for row in rows] == [2, 3, 2]
    assert rows[0][0] == rows[1][0]
    assert rows[0][1] not in rows[1]


def test_texts_that_begin_alike_share_their_blocks(tmp_path):
    """With a tokenizer, which gives token ids; a function only counts."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"w{k}": k for k in range(50)}
    model = tokenizers.models.WordLevel(words, unk_token="w0")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    system = {"role": "system", "content": " ".join(f"w{k}" for k in range(17))}
    lines = [
        batch(
            messages=[system, {"role": "user", "content": f"w{user} w1"}], max_tokens=1
        )
        for user in (20, 21)
    ]
    path = put(tmp_path, "".join(lines))
    ids = read_trace(path, tokenizer=tmp_path).prefix_ids
    assert ids is not None
    assert (ids[0].tolist(), ids[1].tolist()) == ([0], [0])
    assert read_trace(path, tokenizer=count_words).prefix_ids is None
    talk = [
        {"from": "human", "value": system["content"]},
        {"from": "gpt", "value": "w"},
    ]
    path = put(tmp_path, json.dumps([{"conversations": talk}] * 2))
    ids = read_trace(path, tokenizer=tmp_path).prefix_ids
    assert ids is not None
    assert ids.ids.tolist() == [0, 0]


def test_a_tokenizer_has_to_count(tmp_path):
    """A function that returns something else is the caller's mistake."""
    path = put(tmp_path, batch(prompt="x", max_tokens=1))
    with pytest.raises(TypeError, match="tokenizer returned 'x' but must return"):
        read_trace(path, tokenizer=lambda text: text)
    with pytest.raises(TypeError, match="tokenizer must be a function"):
        read_trace(path, tokenizer=5)


def test_a_tokenizer_json_counts_all_tokens_of_a_text(tmp_path):
    """From the file or its folder, even if it asks to cut texts and to add tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"[UNK]": 0, "[BOS]": 1}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[BOS] $A", special_tokens=[("[BOS]", 1)]
    )
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    path = put(tmp_path, batch(prompt="one two three", max_tokens=1))
    for tokenizer in (tmp_path, tmp_path / "tokenizer.json", str(tmp_path)):
        assert read_trace(path, tokenizer=tokenizer).prefill.tolist() == [3]


def test_a_tokenizer_that_cannot_be_read_is_refused(tmp_path):
    """It is missing, or it is something else."""
    pytest.importorskip("tokenizers")
    path = put(tmp_path, batch(prompt="x", max_tokens=1))
    assert "no such file; a tokenizer.json is needed" in refusal(path, tmp_path / "no")
    other = put(tmp_path, "{}", "other.json")
    assert "other.json is no tokenizer.json: " in refusal(path, other)


def test_a_missing_package_names_its_extra(tmp_path, monkeypatch):
    """The package is needed for a tokenizer.json only."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    path = put(tmp_path, batch(prompt="x", max_tokens=1))
    with pytest.raises(MissingExtraError, match=r"pip install 'sortedf\[rank\]'"):
        read_trace(path, tokenizer=tmp_path)
    assert read_trace(path, tokenizer=count_words).prefill.tolist() == [1]

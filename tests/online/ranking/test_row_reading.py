"""The formats that people have, and what is wrong with files."""

from __future__ import annotations

import gzip
import json

import pytest

from online.ranking import RankingError
from online.ranking.row_reading import read_prompts, read_rows
from online.ranking.rows import Prompts, prompts_of
from tests.online.ranking.tiny import write_rows


def words(text):
    """A tokenizer: one token per word."""
    return len(text.split())


def write(path, content):
    path.write_text(
        content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
    )
    return path


def listed(rows):
    return [(row.prompt, row.response_tokens, row.model) for row in rows.rows]


OWN = [
    {"prompt": "a", "response_tokens": 3, "model": "m", "source": "s"},
    {"prompt": "b", "response_tokens": 5},
]


def test_own_rows(tmp_path):
    """Model and source are optional; blank lines are nothing; gzip or not."""
    text = "\n".join(map(json.dumps, OWN)) + "\n\n"
    plain = write(tmp_path / "a.jsonl", text)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    as_list = write(tmp_path / "a.json", OWN)
    for path in (plain, packed, as_list):
        rows = read_rows(path)
        assert listed(rows) == [("a", 3, "m"), ("b", 5, "")]
        assert rows.rows[0].source == "s"
        assert rows.models() == ["m", ""]


def test_one_row(tmp_path):
    """A single object may spread over lines, and is a file of one row."""
    path = write(tmp_path / "a.json", json.dumps(OWN[0], indent=1))
    assert listed(read_rows(path)) == [("a", 3, "m")]


def test_answers_as_texts(tmp_path):
    """Counted by a tokenizer, without which there is no length."""
    path = write(tmp_path / "a.jsonl", json.dumps({"prompt": "a", "response": "x y"}))
    assert listed(read_rows(path, tokenizer=words)) == [("a", 2, "")]
    with pytest.raises(RankingError, match="a tokenizer is needed"):
        read_rows(path)


def test_answers_counted_by_a_tokenizer_file(tmp_path, encoder):
    """The folder of a tokenizer.json will do."""
    path = write(tmp_path / "a.jsonl", json.dumps({"prompt": "a", "response": "a b c"}))
    assert listed(read_rows(path, tokenizer=encoder)) == [("a", 3, "")]


def test_alpaca(tmp_path):
    """The input comes under the instruction, unless it is empty."""
    path = write(
        tmp_path / "alpaca.json",
        [
            {"instruction": "add", "input": "1 2", "output": "it is 3"},
            {"instruction": "sing", "input": "", "output": "la", "generator": "g"},
        ],
    )
    rows = read_rows(path, tokenizer=words)
    assert listed(rows) == [("add\n1 2", 3, ""), ("sing", 1, "g")]


def test_sharegpt(tmp_path):
    """The first human turn and the answer to it."""
    turns = [
        {"from": "system", "value": "be nice"},
        {"from": "human", "value": "hi"},
        {"from": "gpt", "value": "hello to you"},
        {"from": "human", "value": "more"},
    ]
    path = write(tmp_path / "share.json", [{"id": "1", "conversations": turns}])
    assert listed(read_rows(path, tokenizer=words)) == [("hi", 3, "")]
    path = write(tmp_path / "bad.json", [{"conversations": turns[1:2]}])
    with pytest.raises(RankingError, match="item 1: conversations has no human turn"):
        read_rows(path, tokenizer=words)
    path = write(tmp_path / "bad.json", [{"conversations": ["hi"]}])
    with pytest.raises(RankingError, match="item 1: conversations must be a list"):
        read_rows(path, tokenizer=words)


def asked(custom_id, **body):
    return {"custom_id": custom_id, "method": "POST", "url": "/v1", "body": body}


def answered(custom_id, tokens=7, **changes):
    body = {"model": "m", "choices": [{}], "usage": {"completion_tokens": tokens}}
    response = {"status_code": 200, "body": body}
    return {"custom_id": custom_id, "response": response, "error": None, **changes}


@pytest.fixture
def batch_input(tmp_path):
    parts = [{"type": "text", "text": "look"}, {"type": "text", "text": "here"}]
    return write_rows(
        tmp_path / "in.jsonl",
        [
            asked("1", messages=[{"role": "user", "content": "hi"}]),
            asked("2", prompt="go on"),
            asked("3", messages=[{"role": "user", "content": parts}]),
        ],
    )


def test_openai_batch(tmp_path, batch_input):
    """Joined by custom_id; failed requests are counted, not dropped in silence."""
    failed = answered("3", response=None, error={"message": "no"})
    output = write_rows(
        tmp_path / "out.jsonl", [answered("2", 9), failed, answered("1"), answered("3")]
    )
    rows = read_rows(output, prompts=batch_input)
    assert listed(rows) == [("go on", 9, "m"), ("hi", 7, "m"), ("look\nhere", 7, "m")]
    assert rows.num_failed == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (answered("9"), "custom_id '9' is not in the batch's input"),
        (
            answered("1", response={"status_code": 200, "body": {}}),
            "line 1: response.body has no usage",
        ),
        (answered("1", 0), "line 1: completion_tokens = 0 but must be an integer"),
        (
            answered(
                "1",
                response={
                    "status_code": 200,
                    "body": {"choices": [{}, {}], "usage": {"completion_tokens": 5}},
                },
            ),
            "2 answers but must be one",
        ),
    ],
)
def test_bad_batch_output(tmp_path, batch_input, line, message):
    """Lines of an output that give no length."""
    output = write_rows(tmp_path / "out.jsonl", [line])
    with pytest.raises(RankingError, match=message):
        read_rows(output, prompts=batch_input)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"body": {}}, "'custom_id' is missing"),
        ({"custom_id": "1"}, "'body' is missing"),
        (asked("1"), "body needs messages"),
        (asked("1", messages=[{"content": 3}]), r"body\.messages\[0\]\.content"),
        (asked("1", prompt=" "), "the prompt is empty"),
    ],
)
def test_bad_batch_input(tmp_path, line, message):
    """Lines of an input that ask nothing."""
    output = write_rows(tmp_path / "out.jsonl", [answered("1")])
    asked_ = write_rows(tmp_path / "in.jsonl", [line])
    with pytest.raises(RankingError, match=message):
        read_rows(output, prompts=asked_)


def test_same_custom_id_twice(tmp_path):
    """Which of the two was answered?"""
    output = write_rows(tmp_path / "out.jsonl", [answered("1")])
    twice = write_rows(tmp_path / "in.jsonl", [asked("1", prompt="a")] * 2)
    with pytest.raises(RankingError, match=r"line 2: custom_id '1' occurs twice"):
        read_rows(output, prompts=twice)


def test_batch_files_swapped_or_one_missing(tmp_path, batch_input):
    """What is missing is said."""
    output = write_rows(tmp_path / "out.jsonl", [answered("1")])
    with pytest.raises(RankingError, match="give the batch's input file"):
        read_rows(output)
    with pytest.raises(RankingError, match="this is a batch's input"):
        read_rows(batch_input, prompts=output)


@pytest.fixture
def benchmark_result(tmp_path):
    return write(
        tmp_path / "result.json",
        json.dumps(
            {
                "model_id": "m",
                "input_lens": [2, 2, 2],
                "output_lens": [11, 0, 5],
                "errors": ["", "timed out", ""],
            },
            indent=1,
        ),
    )


def test_vllm_benchmark(tmp_path, benchmark_result):
    """Lengths in the order of the data set; failed requests are counted."""
    data = write_rows(tmp_path / "data.jsonl", [{"prompt": p} for p in "abc"])
    rows = read_rows(benchmark_result, prompts=data)
    assert listed(rows) == [("a", 11, "m"), ("c", 5, "m")]
    assert rows.num_failed == 1


def test_vllm_benchmark_without_its_prompts(tmp_path, benchmark_result):
    """None, or not as many."""
    with pytest.raises(RankingError, match="give its data set"):
        read_rows(benchmark_result)
    data = write_rows(tmp_path / "data.jsonl", [{"prompt": p} for p in "ab"])
    with pytest.raises(RankingError, match="3 answers but there are 2 prompts"):
        read_rows(benchmark_result, prompts=data)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"response_tokens": 3}', "line 2: the field 'prompt' is missing"),
        ('{"prompt": "a"}', "line 2: the field 'response_tokens' is missing"),
        ('{"prompt": "a", "response_tokens": 0}', "response_tokens = 0 but must be an"),
        ('{"prompt": "a", "response_tokens": -4}', "response_tokens = -4"),
        ('{"prompt": "a", "response_tokens": 2.5}', "response_tokens = 2.5"),
        ('{"prompt": "a", "response_tokens": true}', "response_tokens = true"),
        ('{"prompt": "a", "response_tokens": "7"}', 'response_tokens = "7"'),
        (
            '{"prompt": 5, "response_tokens": 7}',
            "line 2: prompt = 5 but must be a text",
        ),
        ('{"prompt": " ", "response_tokens": 7}', "line 2: the prompt is empty"),
        (
            '{"prompt": "\\ud800", "response_tokens": 7}',
            "line 2: the prompt is no valid",
        ),
        ('{"prompt": "a"', "line 2 is no JSON"),
        ("[1]", r"line 2 is \[1\] but must be a JSON object"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    """Each with file and line."""
    path = write(tmp_path / "rows.jsonl", f"{json.dumps(OWN[0])}\n{line}\n")
    with pytest.raises(RankingError, match=message) as caught:
        read_rows(path)
    assert "rows.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"[]", "is empty"),
        (b'{"prompt": "a", "response_tokens": 1}\n\xff', "line 2: 0xff is no UTF-8"),
        (b"\x1f\x8b\x08broken", "broken or truncated gzip"),
        (b"[1, 2]", "item 1 is 1 but must be a JSON object"),
    ],
)
def test_bad_files(tmp_path, content, message):
    """Files that are no rows."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(RankingError, match=message):
        read_rows(path)


def test_no_such_file(tmp_path):
    """The reason is said."""
    with pytest.raises(RankingError, match="cannot be read: No such file"):
        read_rows(tmp_path / "none.jsonl")


def test_needless_prompts(tmp_path):
    """A file that holds its prompts needs no other."""
    path = write_rows(tmp_path / "rows.jsonl", OWN)
    with pytest.raises(RankingError, match="contains its prompts"):
        read_rows(path, prompts=path)


def rows_of(tmp_path, *rows):
    return read_rows(write_rows(tmp_path / "rows.jsonl", rows))


def test_answers_to_one_prompt_count_once(tmp_path):
    """By their mean, so that no prompt can be in two parts."""
    rows = rows_of(
        tmp_path,
        {"prompt": "a", "response_tokens": 10, "source": "x"},
        {"prompt": "b", "response_tokens": 5, "source": "y"},
        {"prompt": "a", "response_tokens": 20, "source": "x"},
    )
    found = prompts_of(rows)
    assert found.text == ("a", "b")
    assert found.length.tolist() == [15.0, 5.0]
    assert found.sources == {"x": 1, "y": 1}
    assert isinstance(found.take([1]), Prompts)
    assert found.take([1]).text == ("b",)


def test_several_models(tmp_path):
    """One has to be chosen, as their lengths cannot be compared."""
    rows = rows_of(
        tmp_path,
        *(
            {"prompt": p, "response_tokens": k + 1, "model": "m"}
            for k, p in enumerate("ab")
        ),
        {"prompt": "a", "response_tokens": 9, "model": "n"},
    )
    with pytest.raises(RankingError, match=r"answers of 2 models.*choose one: m, n"):
        prompts_of(rows)
    assert prompts_of(rows, "m").length.tolist() == [1.0, 2.0]
    with pytest.raises(RankingError, match=r"no answers of model 'k'; it has: m, n"):
        prompts_of(rows, "k")


def test_nothing_to_rank(tmp_path):
    """One prompt, or all answers equally long."""
    one = {"prompt": "a", "response_tokens": 3}
    with pytest.raises(RankingError, match="has 1 prompt but ranking needs"):
        prompts_of(rows_of(tmp_path, one, one))
    with pytest.raises(RankingError, match="all 2 answers have 3 tokens"):
        prompts_of(rows_of(tmp_path, one, {**one, "prompt": "b"}))


def test_prompts_to_score(tmp_path):
    """JSON lines, or a text file with a prompt in each line."""
    assert read_prompts(write_rows(tmp_path / "a.jsonl", OWN)) == ["a", "b"]
    assert read_prompts(write(tmp_path / "a.txt", "one two\nthree\n")) == [
        "one two",
        "three",
    ]
    with pytest.raises(RankingError, match="line 2: the prompt is empty"):
        read_prompts(write(tmp_path / "b.txt", "one\n\ntwo\n"))
    with pytest.raises(RankingError, match="line 1: the prompt is empty"):
        read_prompts(write_rows(tmp_path / "b.jsonl", [{"prompt": ""}]))
    with pytest.raises(RankingError, match="is empty"):
        read_prompts(write(tmp_path / "c.jsonl", ""))

"""Files of scores: read as written, refused with the line."""

from __future__ import annotations

import pytest

from online.score_file import read_scores
from sortedf.errors import TraceError


def test_scores_with_and_without_lengths(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text('{"score": -1.5, "length": 3.2}\n\n{"score": 2, "length": 7}\n')
    both = read_scores(path, 2)
    assert both.score.tolist() == [-1.5, 2.0]
    assert both.length.tolist() == [4, 7]
    path.write_text('{"score": 1}\n{"score": 0}\n')
    assert read_scores(path, 2).length is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"score": 1}\n', "has 1 scores but the trace 2 requests"),
        ('{"score": 1}\n' * 3, "has 3 scores but the trace 2 requests"),
        ("", "has 0 scores"),
        ('{"score": 1}\n{\n', "line 2 is no JSON"),
        ('{"score": 1}\n[1]\n', r"line 2 is \[1\] but must be a JSON object"),
        ('{"length": 1}\n', "line 1: the field 'score' is missing"),
        ('{"score": "x"}\n', 'line 1: score = "x" but must be a number'),
        ('{"score": true}\n', "line 1: score = true but must be a number"),
        ('{"score": NaN}\n', "line 1: score = NaN but must be a number"),
        ('{"score": 1, "length": 0}\n', "length = 0 but must be a number, 1 or more"),
        ('{"score": 1, "length": 2}\n{"score": 1}\n', "line 2: length must be in"),
        ('{"score": 1}\n{"score": 1, "length": 2}\n', "line 2: length must be in"),
    ],
)
def test_refused_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "scores.jsonl"
    path.write_text(content)
    with pytest.raises(TraceError, match=message):
        read_scores(path, 2)


def test_what_is_no_text(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="line 1: 0xff is no UTF-8"):
        read_scores(path, 1)
    with pytest.raises(TraceError, match="cannot be read"):
        read_scores(tmp_path / "none.jsonl", 1)

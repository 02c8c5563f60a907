"""Expected answer lengths, and the hints that a request takes along."""

from __future__ import annotations

import pytest

from online.executor.batch.batch_errors import BatchFileError
from online.executor.batch.batch_file import BatchRequest
from online.executor.batch.expected_lengths import (
    body_with_hints,
    expected_tokens,
    read_lengths,
)
from online.requests import UNKNOWN


def asking(**body):
    return BatchRequest("a", "/v1/chat/completions", body)


@pytest.mark.parametrize(
    "content",
    [
        "custom_id,tokens\na,12\nb,3.2\n",
        "tokens,other,custom_id\n12,x,a\n3.2,,b\n",
        '{"custom_id": "a", "tokens": 12}\n\n{"custom_id": "b", "tokens": 3.2}\n',
    ],
)
def test_reads_csv_and_json_lines(tmp_path, content):
    path = tmp_path / "lengths"
    path.write_text(content)
    assert read_lengths(path) == {"a": 12, "b": 4}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must name the columns custom_id and tokens"),
        ("id,tokens\na,1\n", "must name the columns custom_id and tokens"),
        ("custom_id,tokens\na,1\nb\n", "line 3: the field 'tokens' is missing"),
        ("custom_id,tokens\na,0\n", "line 2: tokens = '0' but must be above 0"),
        ("custom_id,tokens\na,x\n", "line 2: tokens = 'x' but must be above 0"),
        ("custom_id,tokens\na,1\na,2\n", "line 3: custom_id 'a' occurs twice"),
        ('{"custom_id": "a", "tokens": true}\n', "line 1: tokens = True"),
        ('{"custom_id": "a"}\n', "line 1: the field 'tokens' is missing"),
        ('{"custom_id": "a", "tokens": 1}\n{\n', "line 2 is no JSON"),
    ],
)
def test_refuses_with_the_place(tmp_path, content, message):
    path = tmp_path / "lengths"
    path.write_text(content)
    with pytest.raises(BatchFileError, match=message):
        read_lengths(path)


@pytest.mark.parametrize("huge", [10**400, 2**80, 1e300])
def test_a_length_beyond_all_measure(huge):
    """One such line ended the whole batch, after the engine had started."""
    assert expected_tokens(asking(max_tokens=huge), {}) == UNKNOWN
    assert expected_tokens(asking(), {"a": huge}) == UNKNOWN


def test_the_requests_own_hint_comes_first():
    from_file = {"a": 7}
    hinted = asking(vllm_xargs={"predicted_tokens": 5}, max_tokens=9)
    assert expected_tokens(hinted, from_file) == 5
    assert expected_tokens(asking(max_tokens=9), from_file) == 7
    assert expected_tokens(asking(max_completion_tokens=8, max_tokens=9), {}) == 8
    assert expected_tokens(asking(max_tokens=9), {}) == 9
    assert expected_tokens(asking(), {}) is None
    assert expected_tokens(asking(max_tokens="many"), {}) is None


def test_hints_leave_the_users_arguments_alone():
    plain = body_with_hints(asking(max_tokens=9), 9, 3)
    assert plain["vllm_xargs"] == {"predicted_tokens": 9, "rank_score": 3}
    own = asking(vllm_xargs={"predicted_tokens": 5, "other": "x"})
    kept = body_with_hints(own, 5, 3)["vllm_xargs"]
    assert kept == {"predicted_tokens": 5, "other": "x", "rank_score": 3}
    assert body_with_hints(asking(), None, None) == {}
    wrong = asking(vllm_xargs="text")
    assert body_with_hints(wrong, 5, 3) == {"vllm_xargs": "text"}

"""JSON from files: values and lines, and what is refused with file and line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf.bounded_file import MOST_VALUES
from sortedf.errors import TraceError
from sortedf.json_values import json_lines, parse_json, read_json, read_lines

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(-9, 9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=9,
)
SPACES = st.text(" \t\r\n", max_size=3)


def refusal(text, **options):
    with pytest.raises(TraceError) as caught:
        parse_json(text, "a.json", TraceError, **options)
    return str(caught.value)


@given(value=VALUES, before=SPACES, after=SPACES, ascii_only=st.booleans())
def test_values_are_those_of_the_standard_library(value, before, after, ascii_only):
    text = before + json.dumps(value, ensure_ascii=ascii_only) + after
    assert parse_json(text, "a.json", TraceError) == json.loads(text) == value


@given(st.text('[]{}",:0a \n\\', max_size=12))
def test_what_is_no_json_is_refused_with_its_line(text):
    """As the standard library finds it; the file's line, counted from `first`."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        line, column = error.lineno + 4, error.colno
        shown = refusal(text, first=5)
        assert shown.startswith(f"a.json: line {line} is no JSON: ")
        assert shown.endswith(f" at column {column}.")


def test_lines(tmp_path):
    """Blank lines are counted; a separator within a text ends no line."""
    path = tmp_path / "a.jsonl"
    path.write_text('\ufeff{"a": 1}\n \n{"a": "\u2028"}\r\n{}', encoding="utf-8")
    expected = [(1, {"a": 1}), (3, {"a": "\u2028"}), (4, {})]
    assert list(read_lines(path, TraceError)) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "a: line 8 is [1] but must be a JSON object."),
        ("{", "a: line 8 is no JSON: expecting property name enclosed in double"),
        ("{} x", "a: line 8 is no JSON: extra data at column 4."),
        (
            '{"b": {"k": 1, "k": 1}}',
            "a: line 8 is no JSON: an object has the key 'k' twice.",
        ),
        ("[" * 100_000, "a: line 8 is no JSON: nested too deeply."),
        ("9" * 5000, "a: line 8 is no JSON: a number has too many digits."),
    ],
)
def test_refused_lines(line, message):
    lines = json_lines(["{}\n", "\n", f"{line}\n"], "a", TraceError, first=6)
    assert next(lines) == (6, {})
    with pytest.raises(TraceError) as caught:
        next(lines)
    assert str(caught.value).startswith(message)


def test_a_text_of_several_lines_is_named_without_a_guessed_line():
    """An object's key that occurs twice: which line it is on is not known."""
    shown = refusal('{\n"a": 1,\n"a": 2}\n')
    assert shown == "a.json is no JSON: an object has the key 'a' twice."


def test_lines_of_very_many_values_are_refused():
    """Each byte or two would take some 100 in memory."""
    line = '{"a": [' + "1," * MOST_VALUES + "1]}"
    with pytest.raises(TraceError, match=r"a cannot be read: .*10,000,000 JSON values"):
        next(json_lines([line], "a", TraceError))


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":\n"\xff"}')
    with pytest.raises(TraceError, match=r"a.json: line 2: 0xff is no UTF-8\."):
        read_json(path, TraceError)

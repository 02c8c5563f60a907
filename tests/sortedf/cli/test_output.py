"""Tables for people, whatever the width of their terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import METHODS
from sortedf.cli.output import TEXT_WIDTH, _fitted, _frame, print_table
from tests.sortedf.cli.terminal import on_terminal

WIDTHS = (60, 80, 120, 200)


@pytest.mark.parametrize("width", WIDTHS)
def test_methods_show_their_names_on_any_terminal(width):
    """At 80 columns the column of names was gone."""
    code, lines = on_terminal(width, "methods")
    assert code == 0
    first_words = {line.split()[0] for line in lines if line.strip()}
    assert set(METHODS) <= first_words
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_whole_on_any_terminal(width, crowd):
    """They were cut to one digit and dots."""
    asked = ("compare", crowd, "--kv-budget", 400, "--methods", "fcfs,svf,best-list")
    code, lines = on_terminal(width, *asked, "--bound", "none")
    assert code == 0
    words = " ".join(lines[1:]).split()
    for name in ("fcfs", "svf", "best-list", "1.00x", "backfill", "runtime"):
        assert name in words
    assert max(map(len, lines[1:])) <= width
    assert "…" not in "".join(lines)


def test_a_file_gets_every_row_of_numbers_in_one_line(capsys):
    """However wide: what is cut there is lost."""
    print_table("wide", ("name", "number"), [("a", "1" * 400), ("b", "")])
    lines = capsys.readouterr().out.splitlines()
    assert sum("1" * 400 in line for line in lines) == 1


def test_a_file_gets_sentences_wrapped_and_whole(capsys):
    """The list of methods had lines of 827 characters."""
    print_table("wide", ("name", "about"), [("a", "word " * 80), ("b", "")], num_text=2)
    out = capsys.readouterr().out
    assert out.count("word") == 80
    assert max(map(len, out.splitlines())) <= TEXT_WIDTH


def test_what_others_print_is_kept_from_standard_output():
    """Of this process and of those that it starts, as engines are."""
    code = (
        "import os\n"
        "from sortedf.cli.output import print_json, standard_output_kept\n"
        "print('before')\n"
        "with standard_output_kept():\n"
        "    print('python')\n"
        "    os.system('echo process')\n"
        "print_json({})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "before\n{}\n"
    assert sorted(done.stderr.split()) == ["process", "python"]


def test_brackets_are_no_styles(capsys):
    """A name in brackets was taken for a colour and not shown."""
    print_table("title", ("name", "about"), [("[bold]x", "[red]"), (":smile:", "")])
    out = capsys.readouterr().out
    for text in ("[bold]x", "[red]", ":smile:"):
        assert text in out


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 29)), min_size=1))
def test_columns_are_narrowed_as_little_as_needed(columns):
    """Never below what they need, and to the very width if anything is narrowed."""
    natural = [most for most, _ in columns]
    least = [min(most, some) for most, some in columns]
    for width in (10, 40, 80, sum(natural) + _frame(len(natural))):
        fitted = _fitted(natural, least, width)
        if fitted is None:
            assert sum(least) + _frame(len(least)) > width
            continue
        assert all(a <= b <= c for a, b, c in zip(least, fitted, natural, strict=True))
        total = sum(fitted) + _frame(len(fitted))
        assert total == width or (total < width and fitted == natural)

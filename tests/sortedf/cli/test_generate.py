"""`sortedf generate`: a trace like any other."""

from __future__ import annotations

import json

from sortedf.cli import generate as generate_command
from tests.refusals import refused


def test_generate_then_solve(cli, tmp_path):
    """What is generated is a trace like any other."""
    path = tmp_path / "mix.csv"
    arguments = ("--n", 50, "--long-share", 0.2, "--seed", 1, "-o", path, "--json")
    code, out, _ = cli("generate", "mix", *arguments)
    assert code == 0
    assert json.loads(out)["n"] == 50
    assert json.loads(out)["path"] == str(path)
    code, out, _ = cli("solve", path, "--kv-budget", 16492, "--json")
    assert json.loads(out)["n"] == 50


def test_generate_names_its_file_by_the_kind(cli, tmp_path, monkeypatch):
    """Without -o the trace is in the folder where one stands."""
    monkeypatch.chdir(tmp_path)
    code, out, _ = cli("generate", "chat", "--n", 5, "--json")
    assert code == 0
    assert json.loads(out)["path"] == "chat.csv"
    assert [path.name for path in tmp_path.iterdir()] == ["chat.csv"]


def test_generate_replaces_no_file_that_was_not_named(cli, tmp_path, monkeypatch):
    """An existing chat.csv in the folder was lost."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "chat.csv"
    path.write_text("mine", encoding="utf-8")
    assert "chat.csv exists; give -o" in refused(cli("generate", "chat", "--n", 5))
    assert path.read_text(encoding="utf-8") == "mine"
    assert cli("generate", "chat", "--n", 5, "-o", "chat.csv")[0] == 0
    assert path.read_text(encoding="utf-8") != "mine"


def test_generate_refuses_where_it_cannot_write_before_it_draws(cli, monkeypatch):
    """Millions of requests take a while."""
    monkeypatch.setattr(generate_command, "generate", None)
    arguments = ("generate", "mix", "--n", 5, "-o", "no/such/mix.csv")
    assert "no/such does not exist" in refused(cli(*arguments))

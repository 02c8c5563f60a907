"""`sortedf rank`: train, evaluate, score, and what they refuse."""

from __future__ import annotations

import json

import pytest

from online.ranking import load_ranker
from tests.online.ranking.tiny import learnable_rows, write_rows
from tests.refusals import refused

pytest.importorskip("torch")
pytest.importorskip("sklearn")


def train(cli, data, output, encoder, *more):
    return cli(
        "rank", "train", data, "-o", output, "--encoder", encoder, "--epochs", 3,
        "--learning-rate", 0.01, "--max-tokens", 24, *more,
    )  # fmt: skip


@pytest.mark.slow
def test_train_evaluate_score(cli, rows_file, encoder, tmp_path):
    """From rows to scores, each with one JSON object on standard output."""
    folder = tmp_path / "ranker"
    code, out, err = train(cli, rows_file, folder, encoder, "--json")
    assert code == 0, err
    content = json.loads(out)
    wanted = "path tau_b validation_tau_b rivals train_prompts test_prompts loss seed"
    assert set(wanted.split()) <= set(content)
    assert content["tau_b"] > 0.3
    assert {"prompt-length", "boosting", "neighbours"} == set(content["rivals"])
    assert "epoch 3 of at most 3: loss" in err
    assert [path.name for path in tmp_path.iterdir()] == ["ranker"]

    code, out, _ = cli("rank", "evaluate", folder, rows_file, "--json")
    assert code == 0
    judged = json.loads(out)
    assert judged["tau_b"] == pytest.approx(content["tau_b"], abs=1e-6)
    assert judged["n"] == content["test_prompts"]
    assert judged["n"] + judged["seen_left_out"] == 120
    code, out, _ = cli("rank", "evaluate", folder, rows_file, "--seen", "--json")
    assert json.loads(out)["n"] == 120

    code, out, _ = cli("rank", "score", folder, rows_file, "--json")
    assert code == 0
    scored = json.loads(out)
    texts = [row["prompt"] for row in learnable_rows(120)]
    assert scored["n"] == 120
    assert scored["scores"] == load_ranker(folder).score(texts).tolist()
    assert len(scored["lengths"]) == 120


@pytest.mark.slow
def test_for_people(cli, rows_file, encoder, tmp_path):
    """Tables with the figures that matter."""
    folder = tmp_path / "ranker"
    code, out, _ = train(cli, rows_file, folder, encoder, "--no-rivals")
    assert code == 0
    assert "prompts not used in training" in out
    assert "pairwise" in out
    assert "boosting" not in out
    code, out, _ = cli("rank", "evaluate", folder, rows_file)
    assert code == 0
    assert "seen in training left out" in out
    texts = ("--text", "long long [b] story", "--text", "yes")
    code, out, _ = cli("rank", "score", folder, *texts, "--quantile", 0.9)
    assert code == 0
    assert "long long [b] story" in out
    assert "P90 of tokens" in out


def test_scores_to_a_file(cli, ranker_folder, tmp_path):
    """One line for a prompt, in order."""
    prompts, output = tmp_path / "p.txt", tmp_path / "s.jsonl"
    prompts.write_text("long long long long\nyes\n", encoding="utf-8")
    code, out, _ = cli("rank", "score", ranker_folder, prompts, "-o", output)
    assert code == 0
    assert "2 scores" in out
    first, second = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    assert first["score"] > second["score"]
    assert first["length"] > second["length"]


def test_a_million_letters(cli, ranker_folder, tmp_path):
    """A prompt like any other."""
    prompts = write_rows(tmp_path / "p.jsonl", [{"prompt": "long " * 200_000}])
    code, out, _ = cli("rank", "score", ranker_folder, prompts, "--json")
    assert code == 0
    assert len(json.loads(out)["scores"]) == 1


@pytest.mark.slow
def test_a_killed_run_goes_on(cli, rows_file, encoder, tmp_path, monkeypatch):
    """The same command again ends with the same ranker."""
    from online.ranking import training

    real = training._Run.epoch
    done = []

    def dies(self, on_step):
        if done:
            raise KeyboardInterrupt
        done.append(real(self, on_step))

    monkeypatch.setattr(training._Run, "epoch", dies)
    code, _, _ = train(cli, rows_file, tmp_path / "a", encoder, "--no-rivals")
    assert code != 0
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "a.checkpoint").is_file()
    monkeypatch.setattr(training._Run, "epoch", real)
    code, first, err = train(
        cli, rows_file, tmp_path / "a", encoder, "--no-rivals", "--json"
    )
    assert code == 0
    assert "epoch 1" not in err
    assert not (tmp_path / "a.checkpoint").exists()
    _, second, _ = train(
        cli, rows_file, tmp_path / "b", encoder, "--no-rivals", "--json"
    )
    assert {**json.loads(first), "path": ""} == {**json.loads(second), "path": ""}


ROW = {"prompt": "a b", "response_tokens": 4}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "is empty"),
        ([ROW], "has 1 prompt but ranking needs at least two"),
        ([ROW, {**ROW, "prompt": "c"}], "all 2 answers have 4 tokens"),
        ([ROW, {"prompt": "a"}], "line 2: the field 'response_tokens' is missing"),
        ([{"response_tokens": 3}], "the field 'prompt' is missing"),
        ([ROW, {**ROW, "response_tokens": 0}], "line 2: response_tokens = 0"),
        ([ROW, {**ROW, "response_tokens": -1}], "line 2: response_tokens = -1"),
        ([ROW, {**ROW, "prompt": ""}], "line 2: the prompt is empty"),
    ],
)
def test_bad_rows(cli, encoder, tmp_path, lines, message):
    """Exit code 2 and one line, before anything is trained."""
    data = write_rows(tmp_path / "rows.jsonl", lines)
    error = refused(train(cli, data, tmp_path / "ranker", encoder))
    assert "rows.jsonl" in error
    assert message in error
    assert not (tmp_path / "ranker").exists()


def test_no_utf8(cli, encoder, tmp_path):
    """Where the byte is."""
    data = tmp_path / "rows.jsonl"
    data.write_bytes(b'{"prompt": "\xe4", "response_tokens": 3}\n')
    error = refused(train(cli, data, tmp_path / "ranker", encoder))
    assert "line 1: 0xe4 is no UTF-8" in error


def test_bad_options(cli, rows_file, encoder, tmp_path):
    """Each with what is allowed."""
    folder = tmp_path / "ranker"
    for option, value, message in (
        ("--loss", "triplet", "one of: listwise, pairwise, pointwise"),
        ("--delta", 1.5, "delta = 1.5"),
        ("--model", "gpt-9", "no answers of model 'gpt-9'"),
        ("--device", "tpu", "device 'tpu' cannot be used"),
        ("--prompts", rows_file, "contains its prompts"),
        ("--layers", 7, "layers = 7"),
    ):
        error = refused(train(cli, rows_file, folder, encoder, option, value))
        assert message in error
    error = refused(train(cli, rows_file, folder, tmp_path / "none"))
    assert "no such folder" in error
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    error = refused(train(cli, rows_file, tmp_path / "full", encoder))
    assert "is not empty and holds no ranker" in error
    error = refused(train(cli, rows_file, tmp_path / "x" / "y", encoder))
    assert "does not exist" in error


def test_bad_rankers_and_prompts(cli, ranker_folder, rows_file, tmp_path):
    """A folder that is none, empty prompts, nothing to score, data that was seen."""
    error = refused(cli("rank", "score", tmp_path, "--text", "a"))
    assert "holds no ranker" in error
    error = refused(cli("rank", "evaluate", tmp_path, rows_file))
    assert "holds no ranker" in error
    error = refused(cli("rank", "score", ranker_folder, "--text", " "))
    assert "prompt 0 is empty" in error
    assert "either a file of prompts or --text" in refused(
        cli("rank", "score", ranker_folder)
    )
    error = refused(cli("rank", "score", ranker_folder, "--text", "a", "--quantile", 2))
    assert "quantile = 2" in error
    error = refused(cli("rank", "score", ranker_folder, tmp_path / "none.jsonl"))
    assert "cannot be read" in error


@pytest.mark.parametrize("command", ["train", "evaluate", "score"])
def test_help(cli, command):
    """With an example."""
    code, out, _ = cli("rank", command, "--help")
    assert code == 0
    assert f"Example: sortedf rank {command}" in " ".join(out.split())


def test_scores_do_not_take_the_place_of_the_prompts(cli, tmp_path):
    """Before any ranker is loaded."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "a"}\n', encoding="utf-8")
    assert "it is an input" in refused(
        cli("rank", "score", "ranker", prompts, "-o", prompts)
    )
    assert prompts.read_text(encoding="utf-8") == '{"prompt": "a"}\n'

"""One cell of the ranking benchmarks: a method, trained and tested once."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.ranking.parts.data import DataSet, encoder, prompts
from online.kendall import tau_b
from online.ranking.embedding import Embedding
from online.ranking.inputs import FrozenStates, Inputs
from online.ranking.libraries import torch
from online.ranking.losses import LOSSES
from online.ranking.network import network_of, tokenizer_of
from online.ranking.prompt_tokens import PromptTokens
from online.ranking.rivals import RIVALS
from online.ranking.split import split
from online.ranking.training import train
from online.ranking.training_settings import TrainingSettings
from sortedf.atomic import atomic_path

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.common.registry import Row, Settings
    from online.ranking.rows import Prompts

    Floats = NDArray[np.float64]

SETTINGS = TrainingSettings(
    encoder="",  # put in when a cell is made
    frozen_layers=5,
    epochs=6,
    patience=3,
    batch_size=16,
    learning_rate=3e-4,
)
"""Settings of all trainings, unless a cell changes them."""


@dataclass(slots=True)
class Bench:
    """One data set, with the state shared by its cells.

    Attributes
    ----------
    settings : Settings
    of : DataSet
    common : TrainingSettings
        Of all cells.
    states : dict
        Hidden states of the frozen layers, by what they depend on.
    """

    settings: Settings
    of: DataSet
    common: TrainingSettings
    states: dict[tuple[int | None, int], FrozenStates] = field(default_factory=dict)
    _embedding: Embedding | None = None

    @classmethod
    def make(cls, settings: Settings, of: DataSet) -> Bench:
        """Make one for a data set; quick mode takes seconds."""
        torch().set_num_threads(1)
        common = replace(SETTINGS, encoder=encoder(), max_tokens=of.max_tokens)
        if settings.quick:
            common = replace(common, epochs=1, max_tokens=16)
        return cls(settings, of, common)

    def prompts(self, model: str) -> Prompts:
        """One model's prompts."""
        return prompts(
            self.settings.data, self.of, model, 60 if self.settings.quick else None
        )

    def row_of_size(self, model: str, method: str, seed: int, size: int) -> Row:
        """Train on so many prompts, and test on all test prompts of the data set."""
        whole = prompts(
            self.settings.data, self.of, model, 60 if self.settings.quick else 10**9
        )
        parts = split(whole.text, seed)
        kept = np.concatenate([parts.train[:size], parts.validation, parts.test])
        row = self._row(whole.take(kept), method, seed, {})
        del row["score"]
        return {**row, "size": size}

    def row(self, model: str, method: str, seed: int, **changes: Any) -> Row:
        """Train a method on one model's lengths and test it on prompts never seen."""
        row = self._row(self.prompts(model), method, seed, changes)
        score = row.pop("score")
        return {**row, "across": self._across(score, model, seed)}

    def _row(
        self, known: Prompts, method: str, seed: int, changes: dict[str, Any]
    ) -> Row:
        began = time.process_time()
        changed = replace(self.common, seed=seed, **changes)
        if method in LOSSES:
            score, facts = self._trained(known, replace(changed, loss=method))
        else:
            score, facts = self._rival(known, method, changed)
        test = known.take(split(known.text, seed).test)
        scores = score(test.text)
        return {
            "data": self.of.name,
            "model": known.model,
            "method": method,
            "seed": seed,
            **changes,
            "tau_b": tau_b(scores, test.length),
            **facts,
            "test_prompts": len(test),
            "cpu_s": round(time.process_time() - began, 2),
            "lengths": test.length.tolist(),
            "prompt_tokens": self._num_tokens(test.text),
            "scores": np.round(scores, 5).tolist(),
            "score": score,
        }

    def _trained(self, known: Prompts, settings: TrainingSettings) -> tuple[Any, Row]:
        key = (settings.layers, settings.frozen_layers)
        states = None
        if settings.frozen_layers:
            states = self.states.setdefault(key, FrozenStates(settings.frozen_layers))
        training = train(known, settings, states=states)

        def score(texts: tuple[str, ...]) -> Floats:
            device = torch().device("cpu")
            ready = Inputs(training.network, training.tokens, texts, device, states)
            return ready.all_scores(np.arange(len(texts)))

        card = training.card
        return score, {
            "validation_tau_b": card["tau_b"]["validation"],
            "best_epoch": card["best_epoch"],
            "epochs": len(card["history"]),
            "train_prompts": card["trained_on"]["train_prompts"],
            "informative_pairs": card["trained_on"]["informative_pairs"],
        }

    def _rival(
        self, known: Prompts, method: str, settings: TrainingSettings
    ) -> tuple[Any, Row]:
        parts = split(known.text, settings.seed)
        train_part, validation = known.take(parts.train), known.take(parts.validation)
        score = RIVALS[method](
            train_part, validation, self._embed(settings), settings.seed
        )
        return score, {"train_prompts": len(train_part)}

    def _embed(self, settings: TrainingSettings) -> Embedding:
        if self._embedding is None:
            network = network_of(settings.encoder)
            key = (None, settings.frozen_layers)
            states = self.states.setdefault(key, FrozenStates(settings.frozen_layers))
            tokens = PromptTokens(tokenizer_of(settings.encoder), settings.max_tokens)
            cpu = torch().device("cpu")
            self._embedding = Embedding(network, tokens, cpu, states)
        return self._embedding

    def _across(self, score: Any, model: str, seed: int) -> dict[str, float]:
        """tau_b on the test prompts of the other models, which share the split."""
        found = {}
        for other in (*self.of.trained, *self.of.others):
            if other != model:
                theirs = self.prompts(other)
                test = theirs.take(split(theirs.text, seed).test)
                found[other] = tau_b(score(test.text), test.length)
        return found

    def _num_tokens(self, texts: tuple[str, ...]) -> list[int]:
        """Return tokens of whole prompts by the encoder's tokenizer."""
        tokenizer = tokenizer_of(self.common.encoder)
        split_ = tokenizer(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in split_["input_ids"]]


def second_opinions(settings: Settings, of: DataSet, seed: int) -> list[Row]:
    """Best tau_b of another model's lengths with each trained model's."""
    bench = Bench(settings, of, SETTINGS)
    rows = []
    for model in of.trained:
        mine = bench.prompts(model)
        test = mine.take(split(mine.text, seed).test)
        best: Row = {"tau_b": None, "opinion": None, "test_prompts": 0}
        for other in (*of.trained, *of.others):
            theirs = prompts(settings.data, of, other, 10**9)
            length = dict(zip(theirs.text, theirs.length, strict=True))
            both = [i for i, text in enumerate(test.text) if text in length]
            if other == model or len(both) < max(2, len(test) // 2):
                continue
            opinion = [length[test.text[i]] for i in both]
            tau = tau_b(opinion, test.length[both])
            if best["tau_b"] is None or tau > best["tau_b"]:
                best = {"tau_b": tau, "opinion": other, "test_prompts": len(both)}
        rows.append(
            {
                "data": of.name,
                "model": model,
                "method": "second opinion",
                "seed": seed,
                **best,
            }
        )
    return rows


LISTS = ("lengths", "prompt_tokens", "scores")


def without_lists(row: Row) -> Row:
    """Return a row for the results: figures only."""
    return {key: value for key, value in row.items() if key not in LISTS}


def pairwise_less(rival: str, rows: list[Row]) -> str:
    """Summarise by how much pairwise is above another loss, training by training."""
    tau = {
        (row["data"], row["model"], row["seed"], row["method"]): row["tau_b"]
        for row in rows
    }
    gains = [
        value - tau[*key[:3], rival]
        for key, value in tau.items()
        if key[3] == "pairwise" and (*key[:3], rival) in tau
    ]
    return (
        f"Pairwise less {rival} over all single trainings: median "
        f"{median(gains):+.3f}, from {min(gains):+.3f} to {max(gains):+.3f}; above "
        f"in {sum(gain > 0 for gain in gains)} of {len(gains)}."
    )


def write_scores(path: Path, rows: list[Row]) -> None:
    """Write test prompts' true lengths and scores beside the results, no texts."""
    keys = ("data", "model", "method", "seed", *LISTS)
    lines = [json.dumps({key: row[key] for key in keys}) for row in rows]
    with atomic_path(path) as unfinished:
        unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

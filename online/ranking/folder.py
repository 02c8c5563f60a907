"""A trained ranker as one folder: weights, configuration, tokenizer, data card."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from online.ranking.length_calibration import LengthCalibration
from online.ranking.libraries import load, quiet_transformers
from online.ranking.network import Network, network_from, tokenizer_of
from online.ranking.ranking_error import RankingError
from online.ranking.rows import digest
from sortedf.errors import OutputError
from sortedf.json_values import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CARD = "ranker.json"
"""Data card, which identifies the folder of a ranker."""

WEIGHTS = "model.safetensors"
SEEN = "seen_prompts.txt"
"""Digests of the prompts that must not be used to evaluate this ranker."""

FORMAT = 1


def write_folder(
    folder: str | os.PathLike[str],
    network: Network,
    tokenizer: Any,
    card: dict[str, Any],
    seen: Iterable[str] = (),
) -> None:
    """Write a ranker's folder, atomically.

    Parameters
    ----------
    folder : path
    network : Network
    tokenizer : transformers tokenizer
    card : dict
        Training data and settings.
    seen : iterable of str
        Prompts of training and validation; only their digests are written.

    Raises
    ------
    OutputError
        If it cannot be written, or a folder that is no ranker's exists already.
    """
    with _new_folder(Path(folder)) as unfinished:
        weights = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in network.module.state_dict().items()
        }
        load("safetensors.torch").save_file(weights, unfinished / WEIGHTS)
        with quiet_transformers():
            network.config.save_pretrained(unfinished)
            tokenizer.save_pretrained(unfinished)
        digests = "".join(f"{digest(text)}\n" for text in seen)
        (unfinished / SEEN).write_text(digests, encoding="ascii")
        content = {"format": FORMAT, **card, "tokenizer": tokenizer_digest(tokenizer)}
        text = json.dumps(content, indent=1)
        (unfinished / CARD).write_text(f"{text}\n", encoding="utf-8")
        # The library restricts reading to the owner; here the umask decides.
        shutil.copymode(unfinished / CARD, unfinished / WEIGHTS)


def read_folder(
    folder: str | os.PathLike[str],
) -> tuple[Network, Any, dict[str, Any], LengthCalibration]:
    """Read a folder written by `write_folder`.

    Raises
    ------
    RankingError
        If the folder is no ranker's, or its parts do not match.
    """
    card = read_card(folder)
    path = os.fspath(folder)
    network = network_from(path, os.path.join(path, WEIGHTS))
    tokenizer = tokenizer_of(path)
    if tokenizer_digest(tokenizer) != card["tokenizer"]:
        raise RankingError(
            f"{path}: the tokenizer is not the one that this ranker was trained with; "
            "restore the files that training wrote."
        )
    try:
        calibration = LengthCalibration.from_dict(card["calibration"])
    except (KeyError, TypeError, ValueError) as error:
        raise RankingError(
            f"{path}: {CARD} has a broken calibration: {error}."
        ) from None
    return network, tokenizer, card, calibration


def read_card(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the data card of a ranker's folder.

    Raises
    ------
    RankingError
        If the folder is no ranker's.
    """
    path = Path(folder)
    if not (path / CARD).is_file():
        what = "holds no ranker" if path.is_dir() else "is no folder"
        raise RankingError(
            f"{path} {what}: a folder written by `sortedf rank train` is needed, with "
            f"{CARD} in it."
        )
    card = read_json(path / CARD, RankingError)
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise RankingError(f"{path / CARD} is no data card of format {FORMAT}.")
    missing = {"tokenizer", "calibration", "settings", "max_tokens"} - set(card)
    if missing:
        raise RankingError(f"{path / CARD} has no {sorted(missing)[0]}.")
    return card


def seen_prompts(folder: str | os.PathLike[str]) -> frozenset[str]:
    """Digests of the prompts of training and validation."""
    path = Path(folder) / SEEN
    return (
        frozenset(path.read_text(encoding="ascii").split())
        if path.is_file()
        else (frozenset())
    )


def tokenizer_digest(tokenizer: Any) -> str:
    """Hash that identifies a tokenizer: vocabulary, its ids and the special ids."""
    vocabulary = sorted(tokenizer.get_vocab().items())
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
    return hashlib.sha256(json.dumps([vocabulary, special]).encode()).hexdigest()


def refuse_folder(folder: Path) -> None:
    """Raise OutputError before a long computation if `write_folder` would fail."""
    if folder.is_file():
        raise OutputError(f"{folder} cannot be written: it is a file.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CARD).is_file():
        raise OutputError(
            f"{folder} is not empty and holds no ranker; choose another folder."
        )
    if not os.access(_nearest(folder), os.W_OK):
        raise OutputError(
            f"{folder} cannot be written: {_nearest(folder)} is not writable."
        )


def _nearest(folder: Path) -> Path:
    """Find the closest existing parent folder."""
    above = folder.absolute().parent
    while not above.exists():
        above = above.parent
    return above


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `target`, renamed to it on success."""
    refuse_folder(target)
    unfinished = target.with_name(f".tmp-{secrets.token_hex(8)}")
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        if target.exists():
            old = target.with_name(f".tmp-{secrets.token_hex(8)}")
            os.replace(target, old)
            os.replace(unfinished, target)
            shutil.rmtree(old)
        else:
            os.replace(unfinished, target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{target} cannot be written: {reason}.") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(unfinished)

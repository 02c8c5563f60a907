"""Checkpoints, from which an interrupted training resumes with the same result."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from online.ranking.libraries import torch
from online.ranking.ranking_error import RankingError
from sortedf.atomic import atomic_path

if TYPE_CHECKING:
    from pathlib import Path

    from online.ranking.rows import Prompts
    from online.ranking.training_settings import TrainingSettings


def fingerprint(
    prompts: Prompts, settings: TrainingSettings, revision: str | None
) -> str:
    """Hash of a training: all prompts, lengths, settings, the encoder's commit."""
    content = [asdict(settings), revision, prompts.text, prompts.length.tolist()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint, atomically."""
    # An open file, as torch refuses names that begin with a dot and have no suffix.
    with atomic_path(path) as unfinished, unfinished.open("wb") as file:
        torch().save(content, file)


def read_checkpoint(path: Path, wanted: str, device: Any) -> dict[str, Any] | None:
    """Read the checkpoint of a training with fingerprint `wanted`; None without one.

    Raises
    ------
    RankingError
        If it cannot be read or is another training's.
    """
    if not path.exists():
        return None
    try:
        content = torch().load(path, map_location=device, weights_only=True)
        found = content["fingerprint"]
    except Exception as error:  # torch raises many classes
        reason = " ".join(str(error).split())[:120]
        raise RankingError(f"{path} is no checkpoint: {reason}") from None
    if found != wanted:
        raise RankingError(
            f"{path} is the checkpoint of another training (other data, settings or "
            "commit of the encoder); remove it, or write to another folder."
        )
    return dict(content)

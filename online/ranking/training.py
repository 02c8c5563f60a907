"""Training: epochs over random batches until validation stops improving."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.kendall import tau_b
from online.ranking.checkpoint import fingerprint, read_checkpoint, write_checkpoint
from online.ranking.folder import write_folder
from online.ranking.inputs import FrozenStates, Inputs
from online.ranking.length_calibration import LengthCalibration, calibrate
from online.ranking.libraries import torch, versions
from online.ranking.losses import LOSSES, Target
from online.ranking.network import (
    Network,
    longest_input,
    network_of,
    revision_of,
    tokenizer_of,
)
from online.ranking.pairs import check_informative, epoch_batches
from online.ranking.prompt_tokens import PromptTokens
from online.ranking.ranker import Ranker, checked_device
from online.ranking.ranking_error import RankingError
from online.ranking.rows import check_rankable
from online.ranking.split import Split, split

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from online.ranking.rows import Prompts
    from online.ranking.training_settings import TrainingSettings

    Floats = NDArray[np.float64]

HEAD_SPEED = 10
"""Learning rate of the new layer relative to the pre-trained encoder's."""

WARM_UP = 0.1
"""Share of all steps in which the learning rate rises, before it falls to 0."""

WEIGHT_DECAY = 0.01
LARGEST_GRADIENT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Result of a training.

    Attributes
    ----------
    network, tokens, calibration
        Parts of the ranker.
    card : dict
        Training data, settings, and quality.
    prompts : Prompts
    parts : Split
        Training, validation and test parts of the prompts.
    test_scores : float64 array
        Scores of the test part, in its order.
    """

    network: Network
    tokens: PromptTokens
    calibration: LengthCalibration
    card: dict[str, Any]
    prompts: Prompts
    parts: Split
    test_scores: Floats

    def ranker(self, device: str = "cpu") -> Ranker:
        """Return the trained ranker."""
        return Ranker(self.network, self.tokens, self.calibration, self.card, device)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder for `load_ranker`."""
        seen = [*self.parts.train, *self.parts.validation]
        texts = [self.prompts.text[i] for i in seen]
        write_folder(folder, self.network, self.tokens.tokenizer, self.card, texts)


def train(
    prompts: Prompts,
    settings: TrainingSettings,
    *,
    device: str = "cpu",
    checkpoint: Path | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
    states: FrozenStates | None = None,
) -> Training:
    """Train a ranker on one model's answer lengths.

    The same prompts, settings and device give the same ranker. Every epoch has its own
    seeds, so a training resumed from a checkpoint gives the same result as one without
    interruption.

    Parameters
    ----------
    prompts : Prompts
    settings : TrainingSettings
    device : str
        Name of a torch device.
    checkpoint : Path, optional
        File written after every epoch, and read at the start if it exists.
    on_step : callable, optional
        Called as `on_step(done, total)` after every batch.
    on_epoch : callable, optional
        Called with `epoch`, `loss` and `tau_b` (on validation) after every epoch.
    states : FrozenStates, optional
        Shared with other trainings of the same encoder and frozen layers.

    Raises
    ------
    RankingError
        If the data is not informative, or a setting does not suit the encoder.
    """
    check_rankable(prompts)
    parts = split(prompts.text, settings.seed, settings.validation, settings.test)
    pairs = check_informative(prompts.take(parts.train), settings.delta)
    with _own_randomness(checked_device(device)):
        run = _Run(prompts, settings, parts, checked_device(device), states)
        run.resume(checkpoint)
        while not run.is_done():
            run.epoch(on_step)
            if checkpoint is not None:
                run.keep(checkpoint)
            if on_epoch is not None:
                on_epoch(run.history[-1])
        return run.result(pairs)


class _Run:
    """A training in progress."""

    def __init__(
        self,
        prompts: Prompts,
        settings: TrainingSettings,
        parts: Split,
        device: Any,
        states: FrozenStates | None,
    ) -> None:
        torch().manual_seed(settings.seed)
        self.prompts, self.settings, self.parts = prompts, settings, parts
        self.device = device
        self.revision = revision_of(settings.encoder)
        self.fingerprint = fingerprint(prompts, settings, self.revision)
        self.network = network_of(settings.encoder, settings.layers, self.revision)
        self.network.module.to(device)
        tokenizer = tokenizer_of(settings.encoder, self.revision)
        longest = longest_input(self.network, tokenizer)
        most = min(settings.max_tokens, longest)
        self.tokens = PromptTokens(tokenizer, most, settings.truncation)
        self.inputs = self._inputs(states)
        self.target = _target(prompts.length[parts.train], settings)
        self.trained = self._trained()
        self.optimizer = self._optimizer()
        self.history: list[dict[str, float]] = []
        self.best: dict[str, Any] | None = None

    def _inputs(self, states: FrozenStates | None) -> Inputs:
        frozen = self.settings.frozen_layers
        if frozen == 0:
            states = None
        elif not self.network.is_layered or frozen >= self.network.num_layers:
            raise RankingError(
                f"frozen_layers = {frozen} but {self.settings.encoder} (of the kind "
                f"{self.network.config.model_type}) has {self.network.num_layers} "
                "layers, of which one must stay free, and only BERT's kind can do this."
            )
        elif states is None:
            states = FrozenStates(frozen)
        elif states.layers != frozen:
            raise ValueError(
                f"states are of {states.layers} layers but frozen_layers = {frozen}."
            )
        texts = self.prompts.text
        return Inputs(self.network, self.tokens, texts, self.device, states)

    def _trained(self) -> dict[str, Any]:
        """Trained parameters by name; gradients of the others are disabled."""
        frozen = self.settings.frozen_layers
        lower = ["encoder.embeddings."]
        lower += [f"encoder.encoder.layer.{k}." for k in range(frozen)]
        found = {}
        for name, parameter in self.network.module.named_parameters():
            if frozen and name.startswith(tuple(lower)):
                parameter.requires_grad_(False)
            else:
                found[name] = parameter
        return found

    def _optimizer(self) -> Any:
        rate = self.settings.learning_rate
        body = [p for name, p in self.trained.items() if not name.startswith("head.")]
        head = [p for name, p in self.trained.items() if name.startswith("head.")]
        return torch().optim.AdamW(
            [
                {"params": body, "lr": rate, "full_rate": rate},
                {"params": head, "lr": rate, "full_rate": HEAD_SPEED * rate},
            ],
            weight_decay=WEIGHT_DECAY,
        )

    def is_done(self) -> bool:
        """Whether all epochs are done, or validation has stopped improving."""
        done = len(self.history)
        if self.best is None:
            return False
        waited = done - self.best["epoch"]
        return done >= self.settings.epochs or waited >= self.settings.patience

    def epoch(self, on_step: Callable[[int, int], None] | None) -> None:
        """Train on the training part once, then evaluate the validation part."""
        number = len(self.history)
        torch().manual_seed(self.settings.seed * 1_000_003 + number + 1)
        rng = np.random.default_rng([self.settings.seed, number])
        train = self.parts.train
        batches = list(epoch_batches(len(train), self.settings.batch_size, rng))
        total = len(batches) * self.settings.epochs
        self.network.module.train()
        losses = []
        for k, batch in enumerate(batches):
            step = number * len(batches) + k
            losses.append(self._step(train[batch], _rate(step, total)))
            if on_step is not None:
                on_step(step + 1, total)
        tau = tau_b(
            self.inputs.all_scores(self.parts.validation),
            self.prompts.length[self.parts.validation],
        )
        loss = float(np.mean([loss for loss in losses if loss is not None] or [0.0]))
        self.history.append({"epoch": number + 1, "loss": loss, "tau_b": tau})
        if self.best is None or tau > self.best["tau_b"]:
            self.best = {"epoch": number + 1, "tau_b": tau, "state": self._state()}

    def _step(self, at: NDArray[np.int64], rate: float) -> float | None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["full_rate"] * rate
        length = self.prompts.length[at]
        loss = LOSSES[self.settings.loss](self.inputs.scores(at), length, self.target)
        if loss is None:
            return None
        self.optimizer.zero_grad()
        loss.backward()
        torch().nn.utils.clip_grad_norm_(self.trained.values(), LARGEST_GRADIENT)
        self.optimizer.step()
        return float(loss.detach())

    def _state(self) -> dict[str, Any]:
        return {name: p.detach().clone() for name, p in self.trained.items()}

    def _put(self, state: dict[str, Any]) -> None:
        with torch().no_grad():
            for name, parameter in self.trained.items():
                parameter.copy_(state[name])

    def keep(self, path: Path) -> None:
        """Write a checkpoint of this training."""
        write_checkpoint(
            path,
            {
                "fingerprint": self.fingerprint,
                "state": self._state(),
                "optimizer": self.optimizer.state_dict(),
                "history": self.history,
                "best": self.best,
            },
        )

    def resume(self, path: Path | None) -> None:
        """Resume from a checkpoint, if there is one."""
        if path is None:
            return
        content = read_checkpoint(path, self.fingerprint, self.device)
        if content is not None:
            self._put(content["state"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.history, self.best = content["history"], content["best"]

    def result(self, pairs: int) -> Training:
        """Restore the best epoch's weights, and evaluate them."""
        if self.best is None:
            raise RuntimeError("no epoch was trained.")
        self._put(self.best["state"])
        length, parts = self.prompts.length, self.parts
        scores = self.inputs.all_scores(parts.validation)
        calibration = calibrate(scores, length[parts.validation])
        test_scores = self.inputs.all_scores(parts.test)
        card = self._card(pairs, calibration, test_scores)
        self.network.module.eval()
        return Training(
            self.network, self.tokens, calibration, card, self.prompts, parts,
            test_scores,
        )  # fmt: skip

    def _card(
        self, pairs: int, calibration: LengthCalibration, test_scores: Floats
    ) -> dict[str, Any]:
        from sortedf import __version__

        parts, length = self.parts, self.prompts.length
        best = self.best or {}
        has_test = len(parts.test) > 0
        return {
            "trained_on": {
                "data": self.prompts.name,
                "model": self.prompts.model,
                "sources": self.prompts.sources,
                "train_prompts": len(parts.train),
                "validation_prompts": len(parts.validation),
                "test_prompts": len(parts.test),
                "informative_pairs": pairs,
            },
            "tau_b": {
                "validation": best["tau_b"],
                "test": tau_b(test_scores, length[parts.test]) if has_test else None,
            },
            "settings": asdict(self.settings),
            "encoder_revision": self.revision,
            "max_tokens": self.tokens.max_tokens,
            "best_epoch": best["epoch"],
            "history": self.history,
            "versions": {"sortedf": __version__, **versions()},
            "calibration": calibration.as_dict(),
        }


def _target(length: Floats, settings: TrainingSettings) -> Target:
    logs = np.log(length)
    spread = float(logs.std())
    return Target(settings.delta, settings.margin, float(logs.mean()), spread or 1.0)


def _rate(step: int, total: int) -> float:
    """Share of the full learning rate in a step, counted from 0."""
    warm = max(1, round(WARM_UP * total))
    if step < warm:
        return (step + 1) / warm
    return (total - step) / max(1, total - warm)


@contextmanager
def _own_randomness(device: Any) -> Iterator[None]:
    """Keep torch's global random state unchanged."""
    devices = [device] if device.type == "cuda" else []
    with torch().random.fork_rng(devices=devices):
        yield

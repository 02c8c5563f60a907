"""Imports of torch, transformers, safetensors and scikit-learn.

They are large and optional, so they are loaded only when they are used.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sortedf.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator


def load(module: str) -> Any:
    """Import a module of the extra `rank`.

    Raises
    ------
    MissingExtraError
        If its package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # it is installed, but one of its dependencies is not
        package = module.partition(".")[0].replace("sklearn", "scikit-learn")
        raise MissingExtraError(
            f"ranking prompts needs {package}: pip install 'sortedf[rank]'."
        ) from None


def torch() -> Any:
    """Return the module torch."""
    return load("torch")


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """Yield the module transformers, without progress bars and hints."""
    transformers = load("transformers")
    logging = load("transformers.utils.logging")
    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield transformers
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()


def versions() -> dict[str, str]:
    """Versions of the libraries that train a ranker."""
    return {name: str(load(name).__version__) for name in ("torch", "transformers")}

"""Token counts of texts. The only module of traces that imports `tokenizers`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sortedf.errors import MissingExtraError, TraceError

if TYPE_CHECKING:
    from sortedf.traces.format import Count


def token_counter(tokenizer: Count | str | os.PathLike[str]) -> Count:
    """Convert a tokenizer argument into a function from text to token count.

    Parameters
    ----------
    tokenizer : callable or path
        A function from a text to its number of tokens, or a tokenizer.json or the
        folder of one. Special tokens are not counted.

    Returns
    -------
    callable
        A `TextTokens`, which has the token ids too, if a path was given.

    Raises
    ------
    TraceError
        If the file cannot be read.
    MissingExtraError
        If a path is given and the package `tokenizers` is missing.
    """
    if not isinstance(tokenizer, str | os.PathLike):
        return _checked(tokenizer)
    path = os.fspath(tokenizer)
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.json")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError(
            "counting tokens with a tokenizer.json needs the package tokenizers: pip "
            "install 'sortedf[rank]'."
        ) from None
    if not os.path.isfile(path):
        raise TraceError(f"{path}: no such file; a tokenizer.json is needed.")
    try:
        loaded = Tokenizer.from_file(path)
    except Exception as error:  # the library raises no more specific class
        raise TraceError(f"{path} is no tokenizer.json: {error}.") from error
    # Some files enable truncation or padding to a model's length.
    loaded.no_truncation()
    loaded.no_padding()
    return TextTokens(loaded)


class TextTokens:
    """Token ids of texts by a tokenizer of the package `tokenizers`, and their number.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self.ids(text))

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, without special ones."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _checked(count: Count) -> Count:
    if not callable(count):
        raise TypeError(
            f"tokenizer must be a function from text to token count, or a path, but is "
            f"{count!r}."
        )

    def checked(text: str) -> int:
        number = count(text)
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"tokenizer returned {number!r} but must return an int.")
        return number

    return checked

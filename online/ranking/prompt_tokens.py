"""Tokenisation of prompts with a limit on the number of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Sequence

TRUNCATIONS = ("head-tail", "head", "tail")
"""Parts of a long prompt that can be kept."""

LETTERS_PER_TOKEN = 32
"""Characters per allowed token that are tokenised at each end of a long prompt, so that
a prompt of a million characters is not tokenised as a whole."""


def cut(ids: Sequence[int], room: int, truncation: str) -> list[int]:
    """Keep at most `room` tokens.

    Parameters
    ----------
    ids : sequence of int
    room : int
    truncation : {"head-tail", "head", "tail"}
        Part to keep; "head-tail" keeps half of `room` at each end.

    Examples
    --------
    >>> cut([1, 2, 3, 4, 5, 6], 4, "head-tail")
    [1, 2, 5, 6]
    """
    if len(ids) <= room:
        return list(ids)
    tail = {"head-tail": room // 2, "head": 0, "tail": room}[truncation]
    return [*ids[: room - tail], *ids[len(ids) - tail :]]


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Tokenises prompts for an encoder, truncated to `max_tokens`.

    Attributes
    ----------
    tokenizer : transformers tokenizer
        With BERT's two special tokens around a text.
    max_tokens : int
        Largest number of tokens, including the two special ones.
    truncation : {"head-tail", "head", "tail"}
        Part of a long prompt to keep. Prompts from templates differ near their end.
    """

    tokenizer: Any
    max_tokens: int
    truncation: str = "head-tail"

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            known = ", ".join(TRUNCATIONS)
            raise RankingError(
                f"truncation = {self.truncation!r} but must be one of: {known}."
            )
        if self.max_tokens < 4:
            raise RankingError(
                f"max_tokens = {self.max_tokens} but must be at least 4."
            )
        for name in ("cls_token_id", "sep_token_id", "pad_token_id"):
            if getattr(self.tokenizer, name, None) is None:
                raise RankingError(
                    f"the tokenizer has no {name}; an encoder of BERT's kind is needed."
                )

    @property
    def pad(self) -> int:
        """Id of the padding token."""
        return int(self.tokenizer.pad_token_id)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, truncated, with the special tokens.

        Raises
        ------
        RankingError
            If a text is empty or no valid Unicode; its number counts from 0.
        """
        reach = LETTERS_PER_TOKEN * self.max_tokens
        ends: list[str] = []
        for number, text in enumerate(texts):
            _check_text(number, text)
            if len(text) > 2 * reach:
                ends += [text[:reach], text[-reach:]]
            else:
                ends.append(text)
        tokens = iter(self._split(ends))
        found = []
        for text in texts:
            ids = next(tokens)
            if len(text) > 2 * reach:
                ids = self._joined(ids, next(tokens))
            found.append(self.wrap(ids))
        return found

    def wrap(self, ids: Sequence[int]) -> list[int]:
        """Truncate one prompt's ids and add the special tokens."""
        kept = cut(ids, self.max_tokens - 2, self.truncation)
        return [self.tokenizer.cls_token_id, *kept, self.tokenizer.sep_token_id]

    def _split(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        found = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return list(found["input_ids"])

    def _joined(self, head: list[int], tail: list[int]) -> list[int]:
        """Ids to truncate, from the ids of both ends of a long text."""
        room = self.max_tokens - 2
        if self.truncation == "head":
            return head
        return tail if self.truncation == "tail" else head[:room] + tail[-room:]


def _check_text(number: int, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"prompt {number} is {type(text).__name__} but must be str.")
    if not text.strip():
        raise RankingError(f"prompt {number} is empty; there is nothing to rank it by.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        raise RankingError(
            f"prompt {number}: {letter!r} at {error.start} is no valid Unicode."
        ) from None

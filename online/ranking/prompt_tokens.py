"""From prompts to token ids of a fixed largest number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Sequence

TRUNCATIONS = ("head-tail", "head", "tail")
"""Which tokens of a long prompt are kept."""

LETTERS_PER_TOKEN = 32
"""So many letters per token of room are looked at from each end of a long prompt: one
of a million letters is not split into tokens to throw almost all of them away."""


def cut(ids: Sequence[int], room: int, truncation: str) -> list[int]:
    """Keep `room` of the tokens.

    Parameters
    ----------
    ids : sequence of int
    room : int
    truncation : {"head-tail", "head", "tail"}
        Which tokens stay; with the first, half of the room is for each end.

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
    """Splits prompts into tokens of an encoder, cut to size.

    Attributes
    ----------
    tokenizer : transformers tokenizer
        With the two tokens that BERT puts around a text.
    max_tokens : int
        Largest number of tokens, those two included.
    truncation : {"head-tail", "head", "tail"}
        Templated prompts differ near their end, so the end should be kept.
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
        """Id that fills a batch's shorter rows."""
        return int(self.tokenizer.pad_token_id)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids, cut, between the two tokens around it.

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
        """Cut one prompt's ids to size and put the two tokens around them."""
        kept = cut(ids, self.max_tokens - 2, self.truncation)
        return [self.tokenizer.cls_token_id, *kept, self.tokenizer.sep_token_id]

    def _split(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        found = self.tokenizer(texts, add_special_tokens=False, verbose=False)
        return list(found["input_ids"])

    def _joined(self, head: list[int], tail: list[int]) -> list[int]:
        """Ids of both ends of a long text, as if all between them were there, too."""
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

"""Reading a JSON file with errors that name it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sortedf.bounded_file import (
    TooLargeFileError,
    read_whole,
    refuse_too_many_values,
)

if TYPE_CHECKING:
    from os import PathLike

    from sortedf.errors import SortedfError


def read_json(path: str | PathLike[str], error_class: type[SortedfError]) -> Any:
    """Read one JSON value, or raise `error_class` with file name and reason."""
    content = read_whole(path, error_class)
    try:
        refuse_too_many_values(content)
        return json.loads(content)
    except TooLargeFileError as error:
        raise error_class(f"{path} cannot be read: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise error_class(f"{path} is no JSON: {error}.") from None

"""Reading a JSON file with errors that name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    from sortedf.errors import SortedfError


def read_json(path: str | PathLike[str], error_class: type[SortedfError]) -> Any:
    """Read one JSON value, or raise `error_class` with file name and reason."""
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise error_class(f"{path} cannot be read: {reason}.") from None
    except (ValueError, RecursionError) as error:
        raise error_class(f"{path} is no JSON: {error}.") from None

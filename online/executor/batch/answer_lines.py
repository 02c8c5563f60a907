"""Output lines of requests that fail without an engine."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from online.executor.batch.batch_file import SUPPORTED

BAD_REQUEST = 400
INTERNAL_ERROR = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """Output of a finished request.

    Attributes
    ----------
    line : str
        Its line of the output file, without the newline.
    failed : bool
        Whether the line holds an error instead of an answer.
    """

    line: str
    failed: bool


def error_answer(
    custom_id: str, message: str, status_code: int = BAD_REQUEST
) -> Answer:
    """Return an error in the format of `vllm run-batch`."""
    content = {
        "id": f"vllm-{secrets.token_hex(8)}",
        "custom_id": custom_id,
        "response": {
            "status_code": status_code,
            "request_id": f"vllm-batch-{secrets.token_hex(8)}",
            "body": None,
        },
        "error": message,
    }
    line = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Answer(line, failed=True)


def unsupported(custom_id: str, url: str) -> Answer:
    """Return the error of a request for an API that is not served."""
    allowed = ", ".join(SUPPORTED)
    return error_answer(
        custom_id, f"URL {url} was used. Supported endpoints: {allowed}."
    )

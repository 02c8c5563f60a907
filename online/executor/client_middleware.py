"""Names the client of each request to `vllm serve` by its API key or another header.

Use it as `--middleware online.executor.client_middleware.NameClients`. The name
replaces what a client says of itself, so that none can take the name of another.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from online.executor.hints import CLIENT_KEY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

VARIABLE = "SORTEDF_CLIENT_HEADER"
"""Environment variable with the name of the header."""

DEFAULT_HEADER = "authorization"
"""The header with the API key."""

EXTRA = "vllm_xargs"
"""Field of a request with the hints for the scheduler."""

WORKS = ("messages", "prompt", "input")
"""Fields by which a request for an answer is known."""


class NameClients:
    """ASGI middleware that sets the client of requests for answers.

    The name is a hash of the header's value, the same for all requests without it.

    Parameters
    ----------
    app : callable
        The application behind it.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self._header = os.environ.get(VARIABLE, DEFAULT_HEADER).lower().encode()

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Pass a request on, with the name of its client."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # the client has gone
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = dict(scope["headers"])
        body = named(body, headers.get(self._header, b""))
        kept = [pair for pair in scope["headers"] if pair[0] != b"content-length"]
        size = str(len(body)).encode()
        scope = {**scope, "headers": [*kept, (b"content-length", size)]}
        whole: list[Message] = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self.app(scope, replay, send)


def named(body: bytes, key: bytes) -> bytes:
    """Return the body of a request with its client's name, by its key.

    Bodies that do not ask for an answer are left as they are.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(request, dict) or not any(name in request for name in WORKS):
        return body
    extra = request.get(EXTRA)
    name = sha256(key).hexdigest()[:16]
    request[EXTRA] = {**(extra if isinstance(extra, dict) else {}), CLIENT_KEY: name}
    return json.dumps(request).encode()

"""Each client is named by its key, and by nothing that it says."""

from __future__ import annotations

import asyncio
import json

import pytest

from online.executor.client_middleware import VARIABLE, NameClients, named


def call(body: bytes, headers=(), *, method="POST", kind="http", parts=1):
    """Send a request through the middleware; return what the application gets."""
    got = {}
    size = max(-(-len(body) // parts), 1)
    chunks = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    messages = [
        {"type": "http.request", "body": chunk, "more_body": n < len(chunks) - 1}
        for n, chunk in enumerate(chunks)
    ]
    messages.append({"type": "http.disconnect"})

    async def receive():
        return messages.pop(0)

    async def app(scope, receive, send):
        got["headers"] = dict(scope["headers"])
        if kind == "http":
            message = await receive()
            got["body"] = message["body"]
            assert not message.get("more_body", False)
            got["next"] = (await receive())["type"]

    scope = {"type": kind, "method": method, "headers": list(headers)}
    asyncio.run(NameClients(app)(scope, receive, None))
    return got


def client(body: dict, *headers):
    sent = json.dumps(body).encode()
    got = call(sent, [(b"content-length", str(len(sent)).encode()), *headers], parts=3)
    assert got["headers"][b"content-length"] == str(len(got["body"])).encode()
    assert got["next"] == "http.disconnect"
    request = json.loads(got["body"])
    name = request["vllm_xargs"].pop("client")
    return name, request


CHAT = {"messages": [], "model": "m"}
KEY, OTHER = (b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")


def test_the_key_is_the_name_whatever_the_client_says():
    honest, request = client(CHAT, KEY)
    assert request == {**CHAT, "vllm_xargs": {}}
    said = {"client": "other", "predicted_tokens": 5}
    liar, request = client({**CHAT, "vllm_xargs": said}, OTHER)
    assert request["vllm_xargs"] == {"predicted_tokens": 5}
    assert client({**CHAT, "vllm_xargs": {"client": honest}}, OTHER)[0] == liar
    assert client({"prompt": "x", "vllm_xargs": 7}, KEY)[0] == honest != liar
    assert client(CHAT)[0] not in (honest, liar)
    assert "Bearer" not in honest


def test_another_header(monkeypatch):
    monkeypatch.setenv(VARIABLE, "X-Tenant")
    tenants = [(b"x-tenant", b"1"), (b"x-tenant", b"2"), (b"x-tenant", b"1")]
    first, second, third = (client(CHAT, KEY, tenant)[0] for tenant in tenants)
    assert first == third != second


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b'{"a": 1}', b"\xff", b"[" * 10**5]
)
def test_other_bodies_stay_as_they_are(body):
    assert named(body, b"key") == body
    assert call(body)["body"] == body


def test_other_requests_pass():
    assert call(b"", method="GET")["body"] == b""
    assert "body" not in call(b"", kind="lifespan")

"""An engine that answers at once or after a moment, without vLLM."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from online.executor.batch.answer_lines import Answer
from online.executor.batch.batch_errors import EngineGoneError
from online.executor.batch.batch_method import read_method
from online.executor.batch.engine_settings import EngineSettings
from online.executor.batch.job import BatchJob
from online.executor.batch.serving import COUNTED
from sortedf.engine_model import EngineModel

if TYPE_CHECKING:
    from pathlib import Path

CHAT = "/v1/chat/completions"


class StubEngine:
    """Echoes prompts; by content one raises, and one kills the engine."""

    def __init__(self, calls=None, delay_s=None, at_once=1000):
        self.rules = EngineModel.vllm(1024, 16, 8, 256)
        self.max_model_len = 512
        self.counts = dict.fromkeys(COUNTED, 0)
        self.asked = []
        self.bodies = {}
        self._calls = calls
        self._delay_s = delay_s
        self._places = asyncio.Semaphore(at_once)

    async def prompt_tokens(self, request):
        return [ord(letter) for letter in prompt_of(request.body)]

    async def hold(self):
        pass

    async def release(self, expected):
        pass

    async def answer(self, request, body):
        async with self._places:
            return await self._answer(request, body)

    async def _answer(self, request, body):
        self.asked.append(request.custom_id)
        self.bodies[request.custom_id] = body
        if self._calls is not None:
            with open(self._calls, "a", encoding="utf-8") as file:
                file.write(request.custom_id + "\n")
        await asyncio.sleep(self._delay_s() if self._delay_s else 0)
        text = prompt_of(body)
        if text == "raise":
            raise LookupError("no such thing")
        if text == "die":
            raise EngineGoneError
        if text == "stop":
            raise KeyboardInterrupt
        content = {"custom_id": request.custom_id, "response": text, "error": None}
        return Answer(json.dumps(content), failed=False)


def prompt_of(body):
    return body["messages"][0]["content"]


def serve_with(engine):
    """What starts this engine, as `serve` starts a real one."""

    @asynccontextmanager
    async def serve(settings, scheduler):
        engine.scheduler = scheduler
        yield engine

    return serve


def request(custom_id, content="hello", *, url=CHAT, **parameters):
    body = {"messages": [{"role": "user", "content": content}], **parameters}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def write_batch(path: Path, requests) -> Path:
    lines = (json.dumps(one) + "\n" for one in requests)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def job_for(folder: Path, *, method="svf", model="m", **options) -> BatchJob:
    return BatchJob(
        folder / "in.jsonl",
        folder / "out.jsonl",
        EngineSettings(model),
        read_method(method),
        **options,
    )


def read_lines(path: Path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

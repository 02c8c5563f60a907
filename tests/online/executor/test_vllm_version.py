"""What the scheduler class uses of vLLM's is looked for before an engine starts."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from online.executor import scheduler_names, vllm_version
from online.executor.numba_guard import let_numba_live
from online.executor.scheduler_names import missing_names
from online.executor.vllm_errors import (
    EngineSettingsError,
    EngineStartError,
    settings_refused,
    start_failed,
)
from online.executor.vllm_version import installed_version, refuse_missing_names
from sortedf.errors import MissingExtraError


def has_vllm(test):
    """Mark a test that imports vLLM, which warns."""
    missing = installed_version() is None
    test = pytest.mark.skipif(missing, reason="vLLM is not installed")(test)
    return pytest.mark.vllm(pytest.mark.filterwarnings("ignore")(test))


@has_vllm
def test_the_installed_version_has_all():
    assert missing_names() == []


@has_vllm
@pytest.mark.parametrize(
    "name", ["_free_request", "_preempt_request", "_handle_blocked_waiting_request"]
)
def test_what_is_missing_is_named_in_one_line(monkeypatch, name):
    from vllm.v1.core.sched.scheduler import Scheduler

    monkeypatch.delattr(Scheduler, name)
    message = re.escape(f"has no Scheduler.{name}")
    with pytest.raises(MissingExtraError, match=message) as caught:
        refuse_missing_names()
    assert "\n" not in str(caught.value)
    assert vllm_version.TESTED[0] in str(caught.value)


@has_vllm
def test_attributes_and_parameters_are_looked_for_too(monkeypatch):
    """Also those that only `__init__` sets, and those of other classes."""
    from vllm.v1.core.sched.scheduler import Scheduler

    def bare(self):
        self.running = []

    monkeypatch.setattr(Scheduler, "__init__", bare)
    monkeypatch.setattr(Scheduler, "_preempt_request", lambda self, request: None)
    monkeypatch.setattr(
        scheduler_names, "OTHERS", ("vllm.v1.request.RequestStatus.NO_SUCH_THING",)
    )
    missing = missing_names()
    assert "Scheduler.requests" in missing
    assert "Scheduler.running" not in missing
    assert "Scheduler._preempt_request(drop_stale_output)" in missing
    assert "vllm.v1.request.RequestStatus.NO_SUCH_THING" in missing


def test_every_name_is_one_that_the_class_uses():
    """So that the list does not outlive what it is for."""
    files = ("vllm_scheduler", "vllm_engine", "vllm_rules", "offered_queue")
    folder = Path(scheduler_names.__file__).parent
    source = "".join((folder / f"{name}.py").read_text() for name in files)
    named = (
        *scheduler_names.METHODS,
        *scheduler_names.ATTRIBUTES,
        *scheduler_names.FIELDS,
    )
    last = [name.rpartition(".")[2] for name in scheduler_names.OTHERS]
    assert [name for name in (*named, *last) if name not in source] == []


def test_a_vllm_without_a_dispatcher_needs_no_guard(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.delitem(sys.modules, "vllm.triton_utils", raising=False)
    monkeypatch.delitem(sys.modules, "vllm.triton_utils.dispatcher", raising=False)
    let_numba_live()


def test_the_guard_goes_by_what_is_there(monkeypatch):
    """Not by a version: 0.31 and 0.33 have the same dispatcher."""

    class NoDictionary:
        def __getattribute__(self, name):
            return lambda *_: name

    dispatcher = ModuleType("vllm.triton_utils.dispatcher")
    for name in ("vllm", "vllm.triton_utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, dispatcher.__name__, dispatcher)
    let_numba_live()
    assert dispatcher.vars(NoDictionary()) == {}
    assert dispatcher.vars(dispatcher) is vars(dispatcher)


class RefusedError(ValueError):
    """As pydantic's, whose text has several lines and a link."""

    def __str__(self):
        return "1 validation error for X\n  Value error, too small [type=value_error]"

    def errors(self):
        return [{"msg": "Value error, too small"}]


@pytest.mark.parametrize(
    ("context", "kind", "begin"),
    [
        (settings_refused, EngineSettingsError, "vLLM refuses the model or the set"),
        (start_failed, EngineStartError, "the engine did not start"),
    ],
)
def test_what_vllm_raises_becomes_one_line(context, kind, begin):
    with pytest.raises(kind) as caught, context():
        raise RefusedError
    assert str(caught.value).startswith(begin)
    assert str(caught.value).endswith(": Value error, too small")

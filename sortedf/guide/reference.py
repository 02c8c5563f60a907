"""Writes the reference: what can be chosen by name, and what can be imported."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.ext.napoleon import Config, NumpyDocstring

import sortedf
from online.arrivals import ARRIVALS
from online.policy import POLICIES
from online.prediction import ERRORS
from sortedf.bounds import BOUNDS
from sortedf.methods import METHODS
from sortedf.registry import load_plugins
from sortedf.step_time import PRESETS

MODULES = {
    "sortedf": (
        "sortedf.certificate", "sortedf.stop", "sortedf.plotting", "sortedf.registry",
        "sortedf.methods.table", "sortedf.options", "sortedf.groups.core",
        "sortedf.step_time.model", "sortedf.step_time.files", "sortedf.cli.commands",
        "sortedf.bounds.table", "sortedf.bounds.options", "sortedf.time_limit",
    ),
    "lp": (
        "lp.prices", "lp.dual", "lp.relaxation", "lp.growth", "lp.dff", "lp.branching",
        "lp.milp", "lp.orders", "lp.formulation", "lp.textbook", "lp.highs",
    ),
    "online": (
        "online.policy", "online.state", "online.rules", "online.requests",
        "online.simulator", "online.run_log", "online.metrics", "online.slo",
        "online.sweep", "online.named", "online.load", "online.arrivals",
        "online.prediction", "online.calibration", "online.plots", "online.log_file",
        "online.step_engine", "online.driver", "online.policies.parts.ranked_queue",
        "online.policies.parts.listed",
        "online.executor.execution", "online.executor.vllm_engine",
        "online.executor.hints", "online.executor.tiny_model",
    ),
}  # fmt: skip
"""Modules whose public names somebody may want to import, beside `sortedf`'s own."""

ABOUT = {
    "sortedf": "The solver core. Everything in the first list is imported from "
    "`sortedf` itself; the modules after it are for those who extend it.",
    "lp": "Relaxations and lower bounds. Methods and bounds by name work without "
    "importing anything from here.",
    "online": "Policies, the simulator, and real engines.",
}


def write_reference(folder: Path) -> None:
    """Write one page for each package, and one for each kind of name."""
    load_plugins()
    folder.mkdir()
    pages = {
        "methods": _methods(),
        "bounds": _bounds(),
        "policies": _policies(),
        "streams": _streams(),
        **{package: _package(package) for package in MODULES},
    }
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")


def _methods() -> str:
    parts = [
        _title("Methods by name", "="),
        "What `sortedf solve --method` and :func:`sortedf.solve` take.",
    ]
    for name, method in METHODS.items():
        facts = [method.about, f"guarantee: {method.guarantee}", f"cost: {method.cost}"]
        if method.max_requests is not None:
            facts.append(f"meant for up to {method.max_requests} requests")
        parts += [_title(name, "-"), _list(facts)]
    return _page(parts)


def _bounds() -> str:
    parts = [
        _title("Bounds by name", "="),
        "What `sortedf bound --method` and :func:`sortedf.bound` take; `auto` is the "
        "best of those that are quick at the size.",
    ]
    for name, bound in BOUNDS.items():
        proof = "with a certificate" if bound.certified else "without a certificate"
        facts = [bound.about, f"cost: {bound.cost}", proof]
        parts += [_title(name, "-"), _list(facts), _doc(name, bound.prove)]
    return _page(parts)


def _policies() -> str:
    parts = [
        _title("Policies by name", "="),
        "What `sortedf simulate --policy`, `sortedf run --mode policy`, "
        "`sortedf run-batch --method` and the scheduler class take. Options are "
        "written `name:option=value`.",
    ]
    for name, kind in POLICIES.items():
        parts += [
            _title(name, "-"),
            _list([kind.about, f"has to know: {kind.knows}", _options(kind.make)]),
            _doc(name, kind.make),
        ]
    return _page(parts)


def _streams() -> str:
    parts = [
        _title("Arrivals, prediction errors, step times", "="),
        "What `sortedf simulate` takes for `--arrivals`, `--noise` and `--step-time`.",
        _title("Arrivals", "-"),
        _list(
            f"`{name}`: {kind.about}. {_options(kind.draw, skip=3)}"
            for name, kind in ARRIVALS.items()
        ),
        _title("Prediction errors", "-"),
    ]
    for name, make in ERRORS.items():
        parts += [_title(name, "~"), _list([_options(make)]), _doc(name, make)]
    parts += [
        _title("Step times", "-"),
        _list(f"`{name}`: `{preset}`" for name, preset in PRESETS.items()),
    ]
    return _page(parts)


def _package(package: str) -> str:
    parts = [_title(f"The package {package}", "="), ABOUT[package]]
    if package == "sortedf":
        names = [name for name in sortedf.__all__ if name not in ("BOUNDS", "METHODS")]
        parts.append(".. currentmodule:: sortedf")
        parts.append(_summary(names))
        parts += [_entry(sortedf, name) for name in names]
    for module in MODULES[package]:
        parts += [
            _title(module, "-"),
            f".. automodule:: {module}\n   :members:\n   :show-inheritance:",
        ]
    return _page(parts)


def _entry(module: ModuleType, name: str) -> str:
    found = getattr(module, name)
    if not inspect.isclass(found):
        return f".. autofunction:: {name}"
    kind = "autoexception" if issubclass(found, Exception) else "autoclass"
    return f".. {kind}:: {name}\n   :members:\n   :show-inheritance:"


def _summary(names: Iterable[str]) -> str:
    return ".. autosummary::\n\n" + textwrap.indent("\n".join(names), "   ")


def _options(make: Callable[..., Any], *, skip: int = 0) -> str:
    parameters = list(inspect.signature(make).parameters.values())[skip:]
    if not parameters:
        return "options: none"
    named = (
        f"`{one.name}`"
        if one.default is inspect.Parameter.empty
        else f"`{one.name}={one.default}`"
        for one in parameters
    )
    return f"options: {', '.join(named)}"


def _doc(name: str, found: object) -> str:
    """Return the docstring, its parameters as a list."""
    doc = inspect.getdoc(found)
    if doc is None:
        raise ValueError(f"{name} has no docstring.")
    return str(NumpyDocstring(doc, Config(napoleon_use_param=False)))


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}"


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"

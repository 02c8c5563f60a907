"""The plug-in that lets vLLM start beside numba, in processes that it starts itself."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from online.executor.vllm_version import installed_version

SCAN = """
import llvmlite.binding.ffi as ffi
from vllm.plugins import load_general_plugins
load_general_plugins()
from vllm.triton_utils import dispatcher
look = getattr(dispatcher, "vars", vars)
print(type(look(ffi.lib).get("kernel")).__name__, len(look(dispatcher)) > 0)
"""


def test_vllm_finds_the_plugin():
    """As it is installed, so that processes without code of ours have it, too."""
    (found,) = entry_points(group="vllm.general_plugins", name="sortedf")
    assert found.value == "online.executor.numba_guard:let_numba_live"


def test_it_loads_nothing_of_ours():
    """It runs in each process of vLLM's, also where this package is not used."""
    code = (
        "import sys, online.executor.numba_guard\n"
        "print(sorted({'numba', 'numpy', 'sortedf', 'vllm'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.vllm
@pytest.mark.skipif(installed_version() is None, reason="vLLM is not installed")
def test_a_process_of_vllms_survives_llvmlite():
    """The scan that failed at start gets a dictionary of what is none."""
    done = subprocess.run(
        [sys.executable, "-c", SCAN],
        capture_output=True,
        text=True,
        env=os.environ | {"VLLM_LOGGING_LEVEL": "ERROR"},
    )
    assert done.stdout.split()[-2:] == ["NoneType", "True"], done.stderr

"""What is built for others: one version everywhere, and only what should be in there.

`make package` goes further: it installs the wheel into a clean environment and uses it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

import sortedf

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXCLUDED = PROJECT["tool"]["setuptools"]["packages"]["find"]["exclude"]
"""Of the product's folders, what is not installed: documents and their scripts."""

BUILD = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Names in the source distribution, and in the wheel that is made of it."""
    folder = tmp_path_factory.mktemp("built")
    build("sdist", ROOT, folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        source = {name.partition("/")[2] for name in file.getnames()}
        file.extractall(folder, filter="data")
    unpacked = archive.with_name(archive.name.removesuffix(".tar.gz"))
    build("wheel", unpacked, folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        return source, {name: file.read(name) for name in file.namelist()}


def build(kind, source, target):
    """Build in this environment, without looking for another setuptools."""
    subprocess.run(
        [sys.executable, "-c", BUILD.format(kind), target],
        cwd=source, check=True, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_the_wheel_has_the_packages_and_nothing_else(built):
    """Neither tests nor documents, and the marks of typed packages."""
    _, wheel = built
    tops = {name.partition("/")[0] for name in wheel}
    version = PROJECT["project"]["version"]
    assert tops == {"sortedf", "lp", "online", f"sortedf-{version}.dist-info"}
    for package in ("sortedf", "lp", "online"):
        assert f"{package}/py.typed" in wheel
        for path in (ROOT / package).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            assert (name in wheel) != any(fnmatch(module, one) for one in EXCLUDED)


@pytest.mark.slow
def test_the_source_distribution_can_be_worked_with(built):
    """Documents, tests, benchmarks and claims come along; caches do not."""
    source, _ = built
    for name in (
        "README.md", "LICENSE", "CITATION.cff", "Makefile", "pyproject.toml",
        "sortedf/guide/which.md", "sortedf/guide/tutorials/savings.py",
        "tests/naive.py", "benchmarks/offline/latency.py", "proofs_checks/README.md",
    ):  # fmt: skip
        assert name in source
    assert not [name for name in source if name.endswith((".pyc", ".nbi", ".nbc"))]


@pytest.mark.slow
def test_commands_and_plugins_are_declared(built):
    _, wheel = built
    (name,) = (name for name in wheel if name.endswith("entry_points.txt"))
    declared = wheel[name].decode()
    assert "sortedf = sortedf.cli.main:main" in declared
    assert "[sortedf.plugins]" in declared


def test_one_version():
    """In the metadata, the package, the citation, and the newest change."""
    version = PROJECT["project"]["version"]
    assert sortedf.__version__ == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", citation, flags=re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    changes = re.findall(r"^\*\*(\d+\.\d+\.\d+)\*\*", readme, flags=re.MULTILINE)
    assert changes[0] == version


def test_errors_name_extras_that_there_are():
    """Extras that messages name exist."""
    extras = set(PROJECT["project"]["optional-dependencies"])
    named = set()
    for package in ("sortedf", "lp", "online", "benchmarks"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for names in re.findall(r"sortedf\[([a-z,-]+)\]", text):
                named |= set(names.split(","))
    assert {"plot", "parquet", "vllm"} <= named <= extras

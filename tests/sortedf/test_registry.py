"""Tables of what is chosen by name: their own files, and those of other packages."""

from __future__ import annotations

import sys

import pytest

from sortedf.registry import Table, load_modules


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two files, each of which registers itself; it names its table."""
    folder = tmp_path / "shapes"
    (folder / "parts").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "parts" / "__init__.py").write_text("raise AssertionError('a part')")
    for name in ("square", "circle"):
        (folder / f"{name}.py").write_text(
            f"from tests.sortedf import test_registry\n"
            f"test_registry.SHAPES.register({name!r})({len(name)})\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "SHAPES", Table("shape", "shapes"))
    yield
    load_modules.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "shapes"]:
        del sys.modules[name]


SHAPES: Table[int] = Table("shape")


@pytest.mark.usefixtures("package")
def test_a_file_in_the_package_is_all_that_an_entry_takes():
    """Found at the first look, whichever way the table is looked at."""
    assert SHAPES.find("square") == 6
    assert dict(SHAPES) == {"circle": 6, "square": 6}
    assert len(SHAPES) == 2


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("look", [list, len, dict, lambda table: "circle" in table])
def test_every_first_look_finds_all(look):
    assert look(SHAPES)
    assert list(SHAPES) == ["circle", "square"]


@pytest.mark.usefixtures("package")
def test_unknown_names_are_answered_with_all_names():
    with pytest.raises(
        ValueError,
        match=r"^unknown shape 'cube'; choose one of: any, circle, square\.$",
    ):
        SHAPES.find("cube", also=("any",))
    with pytest.raises(KeyError):
        SHAPES["cube"]


def test_a_name_is_given_once():
    table: Table[int] = Table("shape")
    assert table.register("square")(4) == 4
    with pytest.raises(ValueError, match=r"shape 'square' is registered twice\."):
        table.register("square")(5)
    assert table["square"] == 4

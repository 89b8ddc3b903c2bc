"""DESIGN.md's table "Where is it": each sentence of the README's promises and programs, with modules that exist."""

import re

import pytest

from tests.unit.project.test_documents import ROOT


def section(page: str, heading: str) -> str:
    """The text below a heading, as one line without bold letters."""
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    assert found, heading
    return found[1].replace("**", "")


def table() -> list[tuple[str, list[str]]]:
    """What the README says, and the modules for it."""
    rows = re.findall(r"^\| (.+) \| (`.+`) \|$", section("DESIGN.md", "Where is it"), re.M)
    return [(said, re.findall(r"`([^`]+)`", modules)) for said, modules in rows if not said.startswith("the README")]


def sentences() -> list[str]:
    """Those of the README's promises, and what its table says that each program does."""
    promises = " ".join(section("README.md", "What it promises").split())
    promises = re.sub(r"(?<=\.) \d\. |^1\. ", " ", promises)
    does = re.findall(r"^\| `cdc-.+` \| (.+) \|$", section("README.md", "The programs"), re.M)
    return [*(each.strip() for each in re.split(r"(?<=[.;])\s", promises) if each.strip()), *does]


def test_every_module_exists() -> None:
    assert table()
    assert [module for _, modules in table() for module in modules if not (ROOT / "cdc" / module).is_file()] == []


@pytest.mark.parametrize("sentence", sentences())
def test_every_sentence_has_its_modules(sentence: str) -> None:
    assert any(said in sentence for said, _ in table())


def test_every_row_is_what_the_readme_says() -> None:
    assert [said for said, _ in table() if not any(said in sentence for sentence in sentences())] == []

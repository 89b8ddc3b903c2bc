"""The documents: README is short, every link leads somewhere, every file that is named exists, lines are not long."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").glob("*.md")])
METRICS = {"producer": "cdc/producer/metrics.py", "consumer": "cdc/consumer/metrics.py"}
LONGEST = {"README.md": 120, "DESIGN.md": 80, "docs/limitations.md": 150}  # lines
WIDTH = 120


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> list[str]:
    """The lines of a page outside of its blocks of code."""
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            lines.append(line)
    return lines


def anchors(page: Path) -> set[str]:
    """What a link to a heading ends with, as GitHub makes it."""
    headings = [line.lstrip("#").strip() for line in prose(page) if re.match("#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and anchor of each link to a file of the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(page))):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{name(target)}#{anchor}"


@pytest.mark.parametrize(("page", "lines"), LONGEST.items())
def test_the_first_pages_are_short(page: str, lines: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines


def test_the_readme_leads_to_every_page() -> None:
    found, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in found and page.suffix == ".md":
            found.add(page)
            ahead += [target for target, _ in links(page)]
    assert set(PAGES) - found == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_are_not_too_long(page: Path) -> None:
    """Rows of tables have no other way."""
    assert [line for line in prose(page) if len(line) > WIDTH and not line.startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    """By its path from the top, or from cdc/ or tests/, as prose names modules."""
    named = re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:py|sql|md|toml|sh|json|yml))\b", page.read_text(encoding="utf-8"))
    folders = (ROOT, ROOT / "cdc", ROOT / "tests", ROOT / "tests/spark")
    assert [path for path in named if not any((folder / path).exists() for folder in folders)] == []


@pytest.mark.parametrize(("program", "module"), METRICS.items())
def test_every_metric_is_documented(program: str, module: str) -> None:
    text = (ROOT / module).read_text(encoding="utf-8")
    named = [f"{name}_total" for name in re.findall(r'_count\(\s*"(\w+)"', text)]
    named += re.findall(r'_value\(\s*"(\w+)"', text)
    named += [f"{name}_count" for name in re.findall(rf'"cdc_{program}_(\w+)"', text)]
    assert named
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    assert [name for name in named if f"`{name}`" not in page] == []


def test_the_way_of_a_message_is_short() -> None:
    """From Kafka to the COMMIT, as the page of the consumer lists it; each of the modules imports one of the others."""
    page = (ROOT / "docs/design/consumer.md").read_text(encoding="utf-8")
    [table] = re.findall(r"passes through on its way.*?\n\n(.*?)\n\n", page, re.DOTALL)
    way = re.findall(r"`([\w/]+)\.py`", table)
    assert 20 <= len(way) == len(set(way)) <= 25
    texts = {path: (ROOT / "cdc" / f"{path}.py").read_text(encoding="utf-8") for path in way}
    names = {path: f"cdc.{path.replace('/', '.')}" for path in way}
    alone = [
        path for path in way
        if not any(f"from {names[path]} " in texts[other] or f"from {names[other]} " in texts[path]
                   for other in way if other != path)
    ]  # fmt: skip
    assert alone == []

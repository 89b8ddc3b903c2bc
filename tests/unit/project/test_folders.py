"""A unit test lies in the folder of the package that it tests."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "tests" / "unit"
OF_ALL_MODULES = "test_private_names.py"
FILES = [path for path in UNIT.rglob("test_*.py") if path.parent != UNIT / "project" and path.name != OF_ALL_MODULES]


def package(path: Path) -> Path:
    return ROOT / "cdc" / path.parent.relative_to(UNIT)


def imported(path: Path, module: Path) -> bool:
    name = ".".join(module.relative_to(ROOT).with_suffix("").parts)
    text = path.read_text(encoding="utf-8")
    return any(f"{name}{end}" in text for end in (" import ", ".", "\n")) or (
        f"from {name.rpartition('.')[0]} import {module.stem}" in text
    )


def test_each_folder_is_one_of_a_package() -> None:
    assert [str(path) for path in FILES if not (package(path) / "__init__.py").exists()] == []


def test_each_file_tests_its_package() -> None:
    assert [str(path) for path in FILES if not imported(path, package(path))] == []


def test_no_file_of_one_package_lies_above_it() -> None:
    """A file beside folders tests a module that is beside them, too, or several of them."""
    misplaced = []
    for path in (path for program in ("consumer", "producer") for path in (UNIT / program).glob("test_*.py")):
        within = [each.name for each in package(path).glob("[a-z]*/") if imported(path, each)]
        beside = [each.stem for each in package(path).glob("[a-z]*.py") if imported(path, each)]
        if len(within) == 1 and not beside and path in FILES:
            misplaced.append(str(path))
    assert misplaced == []

"""The import contracts in pyproject.toml leave nothing out: each program has layers, no package has a circle, and pure
modules touch no driver."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
DRIVERS = {"pymysql", "pymysqlreplication", "confluent_kafka", "pyspark"}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


PROGRAMS = {"consumer", "lake", "producer", "repair", "sandbox", "seed", "spark", "tail", "web"}


def test_each_program_has_layers_that_name_all_its_packages() -> None:
    layered = {name for each in CONTRACTS if each["type"] == "layers" for name in each["containers"]}
    assert layered == {"cdc", *(f"cdc.{name}" for name in PROGRAMS)}
    assert all(each["exhaustive"] for each in CONTRACTS if each["type"] == "layers")


def test_no_package_has_a_circle_of_imports() -> None:
    [acyclic] = [each for each in CONTRACTS if each["type"] == "acyclic_siblings"]
    assert acyclic["ancestors"] == ["cdc", "cdc.**"] and len(acyclic) == 3  # none is left out


def test_every_module_that_calls_itself_pure_must_touch_no_driver() -> None:
    [pure] = [each for each in CONTRACTS if set(each.get("forbidden_modules", ())) == DRIVERS]
    says_so = [
        name_of(path)
        for path in (ROOT / "cdc").rglob("*.py")
        if "Pure." in path.read_text(encoding="utf-8").partition('"""\n')[0]
    ]
    assert says_so
    assert [name for name in says_so if not any(_within(name, each) for each in pure["source_modules"])] == []


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.") or name.removesuffix(".__init__") == package

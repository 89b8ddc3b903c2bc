"""What ``cdc.spark`` offers by name is what a program gets that imports it, whatever was imported before."""

import re
from importlib.util import find_spec
from pathlib import Path

import cdc.spark


def test_no_function_is_called_as_a_module_is() -> None:
    """The import of a module puts it in the place of a function of its name."""
    found = {name: find_spec(f"cdc.spark.{name}") for name in cdc.spark.__all__}
    # A folder without modules, which an update may leave, has no origin.
    # ``audit`` is a script for spark-submit at a path that users name; no module imports it.
    assert [name for name, spec in found.items() if spec is not None and spec.origin] == ["audit"]


def test_only_the_program_imports_the_module_that_is_called_as_a_function_is() -> None:
    folder = Path(cdc.spark.__file__).parent
    texts = {path.relative_to(folder): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    named = re.compile(r"from cdc\.spark\.audit import|from cdc\.spark import audit$", re.MULTILINE)
    assert [path.name for path, text in texts.items() if named.search(text)] == ["__main__.py"]

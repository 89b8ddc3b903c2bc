"""What ``cdc.spark`` offers by name is what a program gets that imports it, whatever was imported before."""

from importlib.util import find_spec

import cdc.spark


def test_no_function_is_called_as_a_module_is() -> None:
    """The import of a module puts it in the place of a function of its name."""
    found = {name: find_spec(f"cdc.spark.{name}") for name in cdc.spark.__all__}
    # A folder without modules, which an update may leave, has no origin.
    assert [name for name, spec in found.items() if spec is not None and spec.origin] == []

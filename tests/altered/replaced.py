"""A name of the program's replaced in a process of its own; in the tests' process pytest's monkeypatch does it."""

from types import ModuleType

__all__ = ["replace"]


def replace(module: ModuleType | type, name: str, value: object) -> None:
    """Raises AssertionError where there is no such name, or where it is that already: nothing would change."""
    assert hasattr(module, name), f"{module.__name__} has no {name}"
    assert getattr(module, name) != value, f"{name} of {module.__name__} is {value!r} already"
    setattr(module, name, value)

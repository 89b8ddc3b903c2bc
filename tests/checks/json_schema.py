"""As much of JSON Schema as report.schema.json uses; a keyword that is not known here is an error, not a blind spot."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

__all__ = ["SCHEMA", "faults"]

Schema = dict[str, Any]

SCHEMA: Schema = json.loads(files("cdc.spark").joinpath("report.schema.json").read_text(encoding="utf-8"))
"""What report.json is like."""

_TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
_KEYWORDS = {
    *("$schema", "$defs", "$ref", "title", "description", "anyOf", "type", "enum", "const"),
    *("properties", "required", "additionalProperties", "items"),
}


def faults(value: Any, schema: Schema, *, root: Schema | None = None, path: str = "") -> Iterator[str]:
    """What is wrong with ``value``, a line each, with its path; nothing where it is as ``schema`` says."""
    root = root or schema
    if unknown := schema.keys() - _KEYWORDS:
        raise ValueError(f"keywords that are not checked: {unknown}")
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root=root, path=path)
    if "anyOf" in schema:
        ways = [list(faults(value, way, root=root, path=path)) for way in schema["anyOf"]]
        if all(ways):
            yield from min(ways, key=len)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{path}: {type(value).__name__} is not of type {schema['type']}"
    elif isinstance(value, dict):
        yield from _members(value, schema, root, path)
    elif isinstance(value, list) and "items" in schema:
        for at, item in enumerate(value):
            yield from faults(item, schema["items"], root=root, path=f"{path}[{at}]")


def _is(value: Any, types: str | list[str]) -> bool:
    named = [types] if isinstance(types, str) else types
    # In Python a truth value is a whole number, in JSON it is not.
    return any(isinstance(value, _TYPES[name]) and (name == "boolean") == isinstance(value, bool) for name in named)


def _members(value: dict[str, Any], schema: Schema, root: Schema, path: str) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{path}: no {name}" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        others = schema.get("additionalProperties", True)
        if name in known:
            yield from faults(item, known[name], root=root, path=f"{path}.{name}")
        elif others is False:
            yield f"{path}: {name} is not documented"
        elif isinstance(others, dict):
            yield from faults(item, others, root=root, path=f"{path}.{name}")

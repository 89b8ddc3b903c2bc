"""Builds dataclasses from TOML text, and checks each key's name, type, and ``choices`` or ``range``."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from cdc.errors import UserError

__all__ = ["build", "lacking", "parsed", "text_of"]


def text_of(path: Path, *, key: str) -> str:
    """Reads the file that the profile key ``key`` names. Raises UserError."""
    try:
        # utf-8-sig ignores a byte order mark at the beginning; some Windows editors write such a mark.
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(
            f"no such file: {path}", code="CDC-FILE-UNREADABLE", where=f"profile key {key}", hint="check the path"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"cannot read {path}: {error}", code="CDC-FILE-UNREADABLE", where=f"profile key {key}"
        ) from None


def parsed(text: str, *, name: str) -> dict[str, Any]:
    """Parses the TOML ``text``; ``name`` is the file's name in errors. Raises UserError."""
    try:
        return tomllib.loads(text)
    # tomllib raises TOMLDecodeError, which is a ValueError. For a number with too many digits, Python itself raises a
    # ValueError.
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"broken TOML: {_without_quotes(error)}",
            code="CDC-PROFILE-TOML",
            where=name,
            hint="correct the file's syntax",
        ) from None


def lacking(content: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    """Returns the ``keys`` (as ``table.key``) that ``content`` lacks."""
    parts = [(key, *key.rpartition(".")[::2]) for key in keys]
    return [key for key, table, name in parts if name not in (content.get(table, {}) if table else content)]


def build(
    kind: Any, content: Mapping[str, Any], *, tables: Mapping[str, Any], removed: Mapping[str, str], path: str = ""
) -> Any:
    """Builds an object of the dataclass ``kind`` from the values in ``content``. ``tables`` maps each key whose value
    is a table to the dataclass of that table.

    ``removed`` maps the keys that only former versions knew to hints for users. ``path`` precedes the keys in errors.
    Raises UserError.
    """
    known = {f.name: f for f in fields(kind) if f.init}
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{path}{key}"
        if key not in known:
            raise _unknown(key, name, list(known), removed)
        # A key may have the name of another table, as web.metrics has.
        if key in tables and not isinstance(known[key].default, str):
            if not isinstance(value, dict):
                raise UserError(
                    f"{key} must be a table",
                    code="CDC-PROFILE-TYPE",
                    where=f"profile key {name}",
                    hint=f"write it as [{name}]",
                )
            values[key] = build(tables[key], value, tables=tables, removed=removed, path=f"{name}.")
        else:
            values[key] = _checked(known[key], value, name)
    return kind(**values)


def _without_quotes(error: Exception) -> str:
    """Returns the message of a parse error, with its place. The parts of the file that tomllib quotes are left out,
    because they may contain a password.
    """
    if not isinstance(error, tomllib.TOMLDecodeError):
        return "a value is too large, or too deep"
    what, _, place = str(error).rpartition(" (at ")
    what = re.sub(r"""['"(].*""", "", re.sub(r"'([=\]]+)'", r"\1", what), flags=re.DOTALL).strip()
    return f"{what} (at {place}"


def _unknown(key: str, name: str, known: list[str], removed: Mapping[str, str]) -> UserError:
    if key in removed:
        return UserError(
            f"{key} is not used", code="CDC-PROFILE-UNUSED-KEY", where=f"profile key {name}", hint=removed[key]
        )
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return UserError(
        "unknown key",
        code="CDC-PROFILE-UNKNOWN-KEY",
        where=f"profile key {name}",
        hint=f"the nearest known key is {near[0]!r}",
    )


def _checked(spec: Any, value: Any, name: str) -> Any:
    default = spec.default if spec.default is not MISSING else spec.default_factory()
    wanted = type(default)
    # isinstance(True, int) is true in Python, but port = true is a mistake.
    if wanted is tuple:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UserError(
                "must be a list of strings", code="CDC-PROFILE-TYPE", where=f"profile key {name}", hint='write ["name"]'
            )
        return tuple(value)
    if not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool):
        words = {str: "a string", int: "a whole number", bool: "true or false", dict: "a table"}[wanted]
        shown = repr(value) if spec.repr else "the value"  # the value may be a secret that lacks its quotes
        raise UserError(
            f"{shown} is not {words}", code="CDC-PROFILE-TYPE", where=f"profile key {name}", hint=f"write {words}"
        )
    choices = spec.metadata.get("choices")
    if choices and value not in choices:
        raise UserError(
            f"{value!r} is not known",
            code="CDC-PROFILE-VALUE",
            where=f"profile key {name}",
            hint=f"one of {', '.join(choices)}",
        )
    low, high = spec.metadata.get("range", (None, None))
    if low is not None and not low <= value <= high:
        raise UserError(
            f"{value} is out of range",
            code="CDC-PROFILE-VALUE",
            where=f"profile key {name}",
            hint=f"from {low} to {high}",
        )
    return value

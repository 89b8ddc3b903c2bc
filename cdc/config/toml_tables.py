"""Builds dataclasses from TOML text: checks each key, and replaces references to secrets."""

import difflib
import os
import re
import subprocess
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import Any

from cdc.errors import Disconnected, UserError

__all__ = ["build", "lacking", "output_of", "parsed", "resolved", "resolved_text", "text_of"]


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

    ``removed`` contains the keys that only former versions of cdc knew, each with a hint for users. ``path`` precedes
    the keys in errors. Raises UserError.
    """
    known = {f.name: f for f in fields(kind) if f.init}
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = f"{path}{key}"
        if key not in known:
            raise _unknown(key, name, list(known), removed)
        # A key whose value is a text may have the name of a table: web.metrics has the name of [metrics].
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


# Replaces references to secrets in a profile's strings, and runs the command that prints a password.
#
# ``${env:NAME}`` is replaced by the value of an environment variable, ``${file:PATH}`` by the content of a file without
# the line breaks at its end. ``$${env:NAME}`` is replaced by the text ``${env:NAME}``. Any other ``$`` is an ordinary
# character. References in a value or content that was inserted are not replaced.

_REFERENCE = re.compile(r"\$(\$?)\{(env|file):([^{}]*)\}")
_COMMAND_SECONDS = 60.0


def resolved(value: Any, *, key: str = "", later: Collection[str] = ()) -> Any:
    """Replaces all references in the strings of a parsed TOML file, except in the values of the keys in ``later``.

    ``key`` is the profile key of ``value``. Raises UserError if a variable is not set or a file can't be read.
    """
    if key in later:
        return value
    if isinstance(value, str):
        return resolved_text(value, key=key)
    if isinstance(value, list):
        return [resolved(each, key=key, later=later) for each in value]
    if isinstance(value, dict):
        return {name: resolved(each, key=f"{key}.{name}" if key else name, later=later) for name, each in value.items()}
    return value


def resolved_text(text: str, *, key: str) -> str:
    """Replaces all references in ``text``. Raises UserError if a variable is not set or a file can't be read."""
    return _REFERENCE.sub(partial(_referenced, key=key), text)


def _referenced(found: re.Match[str], *, key: str) -> str:
    escaped, kind, name = found.groups()
    if escaped:
        return found[0][1:]
    if kind == "file":
        return text_of(Path(name), key=key).rstrip("\r\n")
    if name not in os.environ:
        raise UserError(
            f"environment variable {name} is not set", code="CDC-PROFILE-ENVIRONMENT", where=f"profile key {key}"
        )
    return os.environ[name]


def output_of(command: Sequence[str], *, key: str) -> str:
    """Runs ``command``, the value of the profile key ``key``, without a shell; returns its output without the line
    breaks at its end.

    Raises UserError if the command can't be run. Raises Disconnected if the command fails or prints nothing; programs
    then try again, because a service that issues passwords may answer again later. No error contains the command's
    arguments or its standard output.
    """
    failed = partial(Disconnected, code="CDC-PASSWORD-COMMAND", where=f"profile key {key}")
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_SECONDS, check=False
        )
    except OSError as error:
        raise UserError(
            f"cannot run {command[0]}: {error.strerror}",
            code="CDC-PASSWORD-COMMAND",
            where=f"profile key {key}",
            hint="write the program and each of its arguments as a string of the list",
        ) from None
    except subprocess.TimeoutExpired:
        raise failed(f"{command[0]} has not ended in {_COMMAND_SECONDS:.0f} s") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise failed(
            f"{command[0]} ended with exit status {done.returncode}{f': {said}' if said else ''}",
            hint="run it by hand as the user that runs this program",
        )
    printed = done.stdout.decode("utf-8", "surrogateescape").rstrip("\r\n")
    if not printed:
        raise failed(f"{command[0]} has printed no password", hint="it must print the password, and nothing else")
    return printed

"""Replaces references to secrets in a profile's strings, and runs the command that prints a password.

``${env:NAME}`` is replaced by the value of an environment variable, ``${file:PATH}`` by the content of a file without
the line breaks at its end. ``$${env:NAME}`` is replaced by the text ``${env:NAME}``. Any other ``$`` is an ordinary
character. References in a value or content that was inserted are not replaced.
"""

import os
import re
import subprocess
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cdc.config.toml_tables import text_of
from cdc.errors import Disconnected, UserError

__all__ = ["output_of", "resolved", "resolved_text"]

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

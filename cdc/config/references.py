"""Replaces references to secrets in a profile's strings, and runs the command that prints a password.

``${env:NAME}`` stands for an environment variable, ``${file:PATH}`` for the content of a file without the line breaks
at its end. ``$${env:NAME}`` stands for the text ``${env:NAME}`` itself. Any other ``$`` is an ordinary character. What
a reference stands for is not searched for references.
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
    """The value of a parsed TOML file with all references in its strings replaced, but in the keys in ``later``.

    ``key`` is the name of the value's profile key. Raises UserError for a reference to nothing.
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
    """``text`` with all references replaced. Raises UserError for a reference to nothing."""
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
    """What ``command``, the profile key ``key``, prints, without the line breaks at its end. It runs without a shell.

    Raises UserError if the command can't be run, and Disconnected, after which programs try again, if it fails or
    prints nothing: a service that issues passwords may answer again later. No error contains the command's arguments or
    its standard output.
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

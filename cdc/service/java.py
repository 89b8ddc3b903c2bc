"""Finds the ``java`` that ``JAVA_HOME`` or PATH names and checks its version."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cdc.errors import UserError

__all__ = ["WITH_SPARK", "require_java"]

# No registry has the package, and anybody may take its name there.
WITH_SPARK = "pip install '.[spark]' in the folder of cdc's sources"

_OLDEST = 17


def require_java(environment: Mapping[str, str]) -> Path:
    """The ``java`` that a process with this ``environment`` runs. Raises UserError: none, or older than 17."""
    home = environment.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else environment.get("PATH", ""))
    hint = (
        f"install a JDK of version {_OLDEST} or newer (Debian: openjdk-{_OLDEST}-jre-headless), "
        "and set JAVA_HOME if it is not on PATH"
    )
    if found is None:
        raise UserError("there is no Java", where=f"JAVA_HOME {home}" if home else "PATH", hint=hint)
    output = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None:
        raise UserError(
            f"Java does not print its version: {output.splitlines()[0] if output else 'no output'}",
            where=found,
            hint=hint,
        )
    if int(version[1]) < _OLDEST:
        raise UserError(f"Java {version[1]} is too old", where=found, hint=hint)
    return Path(found)

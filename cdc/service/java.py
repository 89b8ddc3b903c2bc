"""Finds a ``java`` whose version Spark supports, through ``JAVA_HOME`` or PATH; composes the command that installs
PySpark.
"""

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from cdc.errors import UserError

__all__ = ["require_java", "require_java_for_spark", "with_spark"]

_PACKAGE, _EXTRA = "cdc-mysql", 'extra == "spark"'
_OLDEST = 17


def with_spark() -> str:
    """Returns the command that installs PySpark for the Python that runs this program.

    The command does not contain the name of cdc's own package: no package registry contains the package, so anybody
    could register its name there.
    """
    try:
        needed = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        needed = []
    wanted = [each.partition(";")[0].strip() for each in needed if _EXTRA in each.replace("'", '"')]
    if not wanted:
        return "pip install '.[spark]' in the folder of cdc's sources"
    return f"{shlex.quote(sys.executable)} -m pip install {shlex.join(wanted)}"


def require_java(environment: Mapping[str, str]) -> Path:
    """Finds the ``java`` that a process with this ``environment`` runs. Raises UserError if there is no Java, or if its
    version is older than 17.
    """
    home = environment.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else environment.get("PATH", ""))
    hint = (
        f"install a JDK of version {_OLDEST} or newer (Debian: openjdk-{_OLDEST}-jre-headless), "
        "and set JAVA_HOME if it is not on PATH"
    )
    if found is None:
        raise UserError("there is no Java", code="CDC-JAVA", where=f"JAVA_HOME {home}" if home else "PATH", hint=hint)
    done = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    output = done.stderr
    version = re.search(r'version "(?:1\.)?(\d+)', output)
    if version is None:
        told = output.splitlines()[0] if output else f"no output, exit status {done.returncode}"
        raise UserError(
            f"Java does not print its version: {told}",
            code="CDC-JAVA",
            where=found,
            hint=hint,
        )
    if int(version[1]) < _OLDEST:
        raise UserError(f"Java {version[1]} is too old", code="CDC-JAVA", where=found, hint=hint)
    return Path(found)


def require_java_for_spark(environment: Mapping[str, str]) -> Path:
    """Finds the ``java`` that runs Spark. Raises UserError as ``require_java`` does, and if the user has no name:
    Java's class UnixPrincipal, with which Spark's Hadoop client logs in, refuses that.
    """
    java, user = require_java(environment), os.geteuid()
    try:
        pwd.getpwuid(user)
    except KeyError:
        raise UserError(
            f"the user id {user} has no name, and Spark does not start without one",
            code="CDC-SPARK-USER",
            where="/etc/passwd",
            hint=f"add the line cdc:x:{user}:{os.getegid()}::/tmp:/sbin/nologin there, or run the program as another "
            "user; in a container, as the image's user 10001",
        ) from None
    return java

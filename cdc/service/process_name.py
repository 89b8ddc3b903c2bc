"""The name of a process in the commit log: no other has it, and it says where the process runs."""

import os
import re
import socket
import uuid

__all__ = ["described", "process_name"]

_PARTS = re.compile(r"(?P<host>.+) (?P<pid>\d+) [0-9a-f-]{36}", re.DOTALL)


def process_name() -> str:
    """A name for this process, another one at each call."""
    return f"{socket.gethostname()} {os.getpid()} {uuid.uuid4()}"


def described(name: str) -> str:
    """Where the process ``name`` runs, for a message; of one of an older version that is not known."""
    parts = _PARTS.fullmatch(name)
    return f"process {parts['pid']} on host {parts['host']}" if parts else "its version does not say where it runs"

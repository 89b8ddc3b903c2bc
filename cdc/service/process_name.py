"""The name of a process in the commit log: unique, and with the host where the process runs."""

import os
import re
import socket
import uuid

__all__ = ["described", "process_name"]

_PARTS = re.compile(r"(?P<host>.+) (?P<pid>\d+) [0-9a-f-]{36}", re.DOTALL)


def process_name() -> str:
    """A new unique name for this process at each call."""
    return f"{socket.gethostname()} {os.getpid()} {uuid.uuid4()}"


def described(name: str) -> str:
    """The host and process id in ``name``, for a message; names of older versions do not contain them."""
    parts = _PARTS.fullmatch(name)
    return f"process {parts['pid']} on host {parts['host']}" if parts else "its version does not say where it runs"

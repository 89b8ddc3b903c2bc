"""Checks whether a TCP port on this machine is free, and finds free ports."""

import random
import socket

from cdc.errors import UserError

__all__ = ["free_port", "is_free"]

# The range is below the kernel's ephemeral ports (32768 and up). So no outgoing connection can occupy the port of a
# server between a kill and the next start.
_RANGE = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers also set this option, so that a connection in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(*, other_than: int = 0) -> int:
    """Finds a free port.

    While this process is running, no other call returns the same port. So a killed server finds its port free when it
    is started again. But another program may bind the port first; the caller must then try another port.
    """
    for _ in range(1000):
        port = random.choice(_RANGE)
        if port != other_than and is_free(port) and _reserve(port):
            return port
    raise UserError(f"no free port between {_RANGE.start} and {_RANGE.stop}", code="CDC-SANDBOX-PORT")


def _reserve(port: int) -> bool:
    """Reserves ``port`` until this process ends; returns whether that succeeded.

    To reserve a port, this process binds the UDP port with the same number, because the servers do not use UDP.
    ``free_port`` returns a port only if it can bind its UDP port.
    """
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    mark.detach()  # keeps the socket open, although the object is deleted
    return True

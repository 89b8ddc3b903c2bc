"""Checks whether a TCP port on this machine is free, and finds free ports."""

import random
import socket

from cdc.errors import UserError

__all__ = ["free_port", "is_free"]

# The range is below the kernel's ephemeral ports (32768 and up), so that no outgoing connection gets the port of a
# server while the server is killed and started again.
_RANGE = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set this option too, so that a connection in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(*, other_than: int = 0) -> int:
    """A free port, which no other call returns while this process runs, so that a server finds its port free when it is
    started again after a kill. Another program may bind the port first: then the caller must try again.
    """
    for _ in range(1000):
        port = random.choice(_RANGE)
        if port != other_than and is_free(port) and _reserve(port):
            return port
    raise UserError(f"no free port between {_RANGE.start} and {_RANGE.stop}", code="CDC-SANDBOX-PORT")


def _reserve(port: int) -> bool:
    """Reserves ``port`` until this process ends; returns whether it could. It binds the UDP port of the same number:
    the servers do not use UDP, and ``free_port`` returns a port only if it can bind the UDP port.
    """
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    mark.detach()  # keeps the socket open
    return True

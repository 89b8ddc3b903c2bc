"""Checks whether a TCP port on this machine is free, and finds a free one."""

import random
import socket

from cdc.errors import UserError

__all__ = ["free_port", "is_free"]

# Below the kernel's ephemeral range (32768 and up), so that no outgoing connection takes the port of a server while it
# is killed and started again.
_RANGE = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers set this option too: a connection in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(*, other_than: int = 0) -> int:
    """A free port that no other call returns during the life of this process, so that a server finds its port free
    after a kill and a restart. Another program may take it first: then the caller tries again.
    """
    for _ in range(1000):
        port = random.choice(_RANGE)
        if port != other_than and is_free(port) and _reserve(port):
            return port
    raise UserError(f"no free port between {_RANGE.start} and {_RANGE.stop}", code="CDC-SANDBOX-PORT")


def _reserve(port: int) -> bool:
    """Reserves the number by binding its UDP port until the process ends: our servers use no UDP, and every search for
    a TCP port tries the UDP port first.
    """
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    mark.detach()  # stays open
    return True

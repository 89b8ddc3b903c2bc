"""TCP ports on this machine: is it free, and one that is."""

import random
import socket

from cdc.errors import UserError

__all__ = ["free_port", "is_free"]

# Below the kernel's ephemeral range (32768 and up): a server that was killed gets its port back at the next start,
# which no outgoing connection can have taken meanwhile.
_RANGE = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a connection of a past server in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(*, other_than: int = 0) -> int:
    """A port nobody listens on. Another process may still take it first: whoever starts a server tries again."""
    for _ in range(1000):
        port = random.choice(_RANGE)
        if port != other_than and is_free(port):
            return port
    raise UserError(f"no free port between {_RANGE.start} and {_RANGE.stop}")

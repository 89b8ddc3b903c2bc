"""What Spark writes to standard error whatever the user does, taken out of it while it is passed on. Pure."""

import re
from collections.abc import Iterable, Iterator

__all__ = ["after_ivy", "without_noise"]

_RESOLVED = re.compile(rb" artifacts copied, [^\n]*\n")  # the last line of Ivy's report
# What the JVM says of itself, and Spark where it takes our program for a person at a prompt.
_NOISE = (
    b"WARNING: Using incubator modules: jdk.incubator.vector\n",
    b'Setting default log level to "WARN".\n',
    b"To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).\n",
)


def without_noise(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """``chunks`` without the lines that are always written, each passed on as soon as it can't be of such a line.

    The JVM writes a line in several pieces.
    """
    held = b""
    for chunk in chunks:
        lines = (held + chunk).splitlines(keepends=True)
        can_be_noise = lines and not lines[-1].endswith(b"\n") and any(n.startswith(lines[-1]) for n in _NOISE)
        held = lines.pop() if can_be_noise else b""
        if told := b"".join(line for line in lines if line not in _NOISE):
            yield told
    if held:
        yield held


def after_ivy(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """``chunks`` from the end of Ivy's report on; all of them where that does not come to its end."""
    read, held = iter(chunks), b""
    for chunk in read:
        held += chunk
        if end := _RESOLVED.search(held):
            yield held[end.end() :]
            yield from read
            return
    yield held

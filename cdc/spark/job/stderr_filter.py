"""Removes from Spark's standard error the lines that it always writes, while passing on the rest. Pure."""

import re
from collections.abc import Iterable, Iterator

__all__ = ["after_ivy", "without_banners"]

_RESOLVED = re.compile(rb" artifacts copied, [^\n]*\n")  # the last line of Ivy's report
# The first line is from the JVM; Spark writes the others because it treats the program as an interactive session.
_NOISE = (
    b"WARNING: Using incubator modules: jdk.incubator.vector\n",
    b'Setting default log level to "WARN".\n',
    b"To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).\n",
)


def without_banners(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Removes the lines that Spark always writes from ``chunks``.

    A line may come in several chunks. The end of a chunk is held back only while it may be the start of such a line.
    """
    held = b""
    for chunk in chunks:
        lines = (held + chunk).splitlines(keepends=True)
        can_be_noise = lines and not lines[-1].endswith(b"\n") and any(n.startswith(lines[-1]) for n in _NOISE)
        held = lines.pop() if can_be_noise else b""
        if rest := b"".join(line for line in lines if line not in _NOISE):
            yield rest
    if held:
        yield held


def after_ivy(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the output in ``chunks`` that follows the end of Ivy's report; all output if the report has no end."""
    read, held = iter(chunks), b""
    for chunk in read:
        held += chunk
        if end := _RESOLVED.search(held):
            yield held[end.end() :]
            yield from read
            return
    yield held

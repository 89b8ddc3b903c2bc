"""Reads what Spark writes: removes the lines that it always writes to standard error, and finds the root cause of an
error. Pure.
"""

import re
from collections.abc import Iterable, Iterator

__all__ = ["after_ivy", "raised_message", "root_cause", "was_cancelled", "without_banners"]

_RESOLVED = re.compile(rb" artifacts copied, [^\n]*\n")  # the last line of Ivy's report
# The first line is from the JVM; Spark writes the others because it treats the program as an interactive session.
_NOISE = (
    b"WARNING: Using incubator modules: jdk.incubator.vector\n",
    b'Setting default log level to "WARN".\n',
    b"To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).\n",
)


def without_banners(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields ``chunks`` without the lines that Spark always writes.

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


# Parses the text of Spark's errors: finds the root cause, and messages that ``raise_error`` in our SQL raised.

_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: P0001|\n|$)")
_CAUSE = re.compile(r"^(?:Caused by)?: ([\w$]+[.].+)", re.MULTILINE)


def root_cause(error: Exception) -> str:
    """Extracts the last cause from the error's text, as one line: Spark lists the causes one after the other, each with
    its stack trace.
    """
    causes: list[str] = _CAUSE.findall(str(error))
    return causes[-1] if causes else str(error).strip().partition("\n")[0]


def raised_message(error: Exception) -> str | None:
    """Returns the message of the ``raise_error`` that made Spark fail; None if Spark failed for another reason."""
    found = _RAISED.search(str(error))
    return found[1] if found else None


def was_cancelled(error: Exception) -> bool:
    """Whether Spark raised the error because a job was cancelled."""
    return "SPARK_JOB_CANCELLED" in str(error)

"""Parses the text of Spark's errors: finds the root cause, and messages that ``raise_error`` in our SQL raised."""

import re

__all__ = ["raised_message", "root_cause", "was_cancelled"]

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

"""Extracts the root cause of a Spark exception as one line."""

import re

__all__ = ["root_cause"]


def root_cause(error: Exception) -> str:
    """The last cause in Spark's message, which lists all causes from the outermost to the root, with their traces."""
    causes: list[str] = re.findall(r"^(?:Caused by)?: ([\w$]+[.].+)", str(error), re.MULTILINE)
    return causes[-1] if causes else str(error).strip().partition("\n")[0]

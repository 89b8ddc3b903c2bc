"""Decides whether ``cdc`` was tested with the version of a server. Pure."""

import re

__all__ = ["TESTED", "is_tested"]

TESTED = ("MySQL 8.0", "MySQL 9.7", "MariaDB 10.11", "MariaDB 11.8")


def is_tested(version: str) -> bool:
    """Whether a server with this ``version``, the result of ``VERSION()``, belongs to one of the ``TESTED`` series."""
    name = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    numbers = re.match(r"\d+\.\d+", version)
    return numbers is not None and f"{name} {numbers[0]}" in TESTED

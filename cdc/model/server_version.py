"""Decides from a server's version whether ``cdc`` was tested with this version, and whether the server logs cascading
changes. Pure.
"""

import re

__all__ = ["TESTED", "is_tested", "logs_cascades", "makes_column_references"]

TESTED = ("MySQL 8.0", "MySQL 9.7", "MariaDB 10.11", "MariaDB 11.8")


def is_tested(version: str) -> bool:
    """Whether a server with this ``version``, the result of ``VERSION()``, belongs to one of the ``TESTED`` series."""
    name = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    numbers = re.match(r"\d+\.\d+", version)
    return numbers is not None and f"{name} {numbers[0]}" in TESTED


def logs_cascades(version: str) -> bool:
    """Whether a server with this ``version`` logs the rows that its foreign keys change, as MySQL does from 9.6 on.

    The result is true for an unknown version (an empty text), too; then only the flags of rows events show whether the
    server logs these rows.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None:
        return True
    return "mariadb" not in version.lower() and (int(numbers[1]), int(numbers[2])) >= (9, 6)


def makes_column_references(version: str) -> bool | None:
    """Whether a server with this ``version`` creates a foreign key for REFERENCES in a column's definition, as MySQL
    does from 9.0 on; None for an unknown version."""
    numbers = re.match(r"\d+", version)
    return None if numbers is None else int(numbers[0]) >= 9

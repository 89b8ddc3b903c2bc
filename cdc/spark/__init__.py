"""Reads a leader's topics on Spark: tables as of any moment of their history, and the audit of a follower.

from cdc.spark import table

table(spark, "producer_profile.toml", "shop.orders", at="2026-11-01 12:00:00")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdc.spark.data_source import register as register
    from cdc.spark.frames.api import changes as changes
    from cdc.spark.frames.api import schema as schema
    from cdc.spark.frames.api import table as table
    from cdc.spark.frames.api import tables as tables
    from cdc.spark.verdict import audit as audit

# The import of a package or module of cdc.spark would replace a function of the same name. So no function except
# ``audit`` is named like a package or module; packages are called ``ddl`` and ``frames``, not ``schema`` and
# ``tables``. The module ``audit`` is a script for spark-submit, which only cdc-audit imports.
_MODULES = {
    "audit": "cdc.spark.verdict",
    "register": "cdc.spark.data_source",
    **dict.fromkeys(("changes", "schema", "table", "tables"), "cdc.spark.frames.api"),
}
__all__ = ["audit", "changes", "register", "schema", "table", "tables"]


def __getattr__(name: str) -> Any:
    """Imports a function at its first use, so that programs start without waiting for the import."""
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(_MODULES[name]), name)

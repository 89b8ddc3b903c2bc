"""Logs the stages of an audit that takes minutes: the audit prints nothing else before its verdict."""

import logging

from cdc.service.logs import event
from cdc.spark.job.options import is_small

__all__ = ["log_stage"]

_LOG = logging.getLogger("cdc.audit")


def log_stage(stage: str, *, records: int, rows: int = 0) -> None:
    """Logs that ``stage`` begins, with the size of the audit; logs nothing if the audit takes only seconds."""
    if not is_small(records, rows):
        event(_LOG, stage, records=records, **({"rows": rows} if rows else {}))

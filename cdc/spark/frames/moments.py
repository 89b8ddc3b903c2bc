"""Finds the sequence of a moment: the last sequence of the newest transaction that the leader had committed at that
moment.
"""

from datetime import UTC, datetime

from pyspark.sql import functions as F

from cdc.errors import UserError
from cdc.model.gtid import given_gtid
from cdc.spark.frames.messages import Source

__all__ = ["Moment", "sequence_at"]

Moment = int | str | datetime | None
"""A moment of the stream: a sequence, a GTID, a time as text in the session's time zone, or None for now."""


def sequence_at(source: Source, at: Moment) -> int:
    """Returns the last sequence of the newest transaction that was complete at ``at``; -1 if there is no such
    transaction.

    If ``at`` is a sequence inside a transaction, the result is the end of the previous transaction. A time is compared
    with the leader's commit times: the result is the newest transaction, in the order of the stream, that did not
    commit later than this time, even if an earlier transaction committed later. Raises UserError for a GTID that the
    stream does not contain, a negative sequence, or a text that is neither a GTID nor a time.
    """
    if at is None or (isinstance(at, int) and at >= source.newest):
        return source.newest
    if isinstance(at, int) and at < 0:
        raise UserError(f"no moment of the stream: {at}", code="CDC-TABLE-ARGUMENT", hint="the first sequence is 0")
    heads = source.heads().where("last")
    if isinstance(at, str) and given_gtid(at):
        # ``lower`` is not used, since its first call in a JVM takes 1.4 s.
        found = heads.where(F.col("transaction").rlike(f"(?i)^{at}$")).agg(F.max("sequence")).first()
        if found is None or found[0] is None:
            raise UserError(
                f"the stream has no transaction {at}",
                code="CDC-TABLE-ARGUMENT",
                hint="without records of a table it has none",
            )
        return int(found[0])
    if isinstance(at, int):
        heads = heads.where(F.col("sequence") <= at)
    else:
        heads = heads.where(F.col("ts_us") <= _microseconds(source, at))
    found = heads.agg(F.max("sequence")).first()
    return -1 if found is None or found[0] is None else int(found[0])


def _microseconds(source: Source, at: str | datetime) -> int:
    """Converts a time to µs since 1970; a time without a zone is in the session's time zone. Raises UserError for any
    other text."""
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise UserError(
            f"no moment of the stream: {at!r}",
            code="CDC-TABLE-ARGUMENT",
            hint="a sequence, a GTID, or a time such as '2026-11-01 12:00:00', with +00:00 or without",
        ) from None
    if moment.tzinfo is None:  # Spark parses the text: it knows time zones that Python lacks, such as +02:00
        found = source.spark.sql(f"SELECT unix_micros(CAST(TIMESTAMP_NTZ '{moment}' AS TIMESTAMP))").first()
        assert found is not None
        return int(found[0])
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds

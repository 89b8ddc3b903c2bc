"""When records were in Kafka: the time of each entry of a commit log, which commits in one transaction with them.

A record's own time is its commit on the server. An entry's is the producer's clock, in ms, when it asked Kafka to
commit. The commit log is compacted: where entries are gone, nobody knows any more when their records arrived, and
nothing is said of them. Each commit takes two offsets (the entry, the end of its transaction), so a larger step from
one entry to the next shows that something was between them.
"""

import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc.config.profile import Kafka
from cdc.kafka.errors import question_error
from cdc.kafka.partitions import begin_offsets, end_offsets
from cdc.model.commit_entry import VERSION
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.local_frame import literal
from cdc.spark.input.records import messages
from cdc.spark.input.spans import Span

__all__ = ["SCHEMA", "intervals", "read_arrivals"]

SCHEMA = "side STRING, since BIGINT, upto BIGINT, at_us BIGINT, offset BIGINT"

_TIMEOUT_SECONDS = 10.0
_ENDED_SECONDS = 1.0  # then lag goes without what the entry tells


def read_arrivals(spark: SparkSession, kafka: Kafka, *, side: str, resource: str, begin: int = 0) -> DataFrame:
    """Which sequences of ``resource`` arrived when: after ``since`` up to ``upto``, at ``at_us`` (µs since 1970).

    Read from the offset ``begin`` on, of which nothing is told itself where it is not 0. ``offset`` is the entry's.
    """
    found = _span_of_log(kafka, begin)
    if not found.partitions:
        return literal(spark, [], SCHEMA)
    read = messages(spark, found, options=kafka_options(kafka)).where(F.col("key") == F.lit(resource).cast("binary"))
    body = F.col("value").cast("string")
    # Nobody here knows what an entry of a newer version says.
    known = F.coalesce(F.get_json_object(body, "$.version").cast("bigint"), F.lit(0)) <= VERSION
    next_one = F.when(known, F.get_json_object(body, "$.next_sequence").cast("bigint"))
    entries = read.select(
        F.lit(side).alias("side"), "offset", next_one.alias("next"), F.unix_micros("timestamp").alias("at_us")
    )
    return intervals(entries.where("next IS NOT NULL"))


def intervals(entries: DataFrame) -> DataFrame:
    """``entries`` (side, offset, next, at_us) as the sequences that each alone brought, with the columns of SCHEMA."""
    before = F.lag(F.struct("offset", "next")).over(Window.partitionBy("side").orderBy("offset"))
    told = entries.withColumn("before", before)
    first = F.when(F.col("offset") == 0, 0)
    adjacent = F.when(F.col("offset") - F.col("before.offset") <= 2, F.col("before.next"))
    told = told.withColumn("since", F.coalesce(adjacent, first) - 1)
    told = told.select("side", "since", (F.col("next") - 1).alias("upto"), "at_us", "offset")
    return told.where("since < upto")


def _span_of_log(kafka: Kafka, begin: int) -> Span:
    """The offsets of the commit log from ``begin`` on; none where it is not there.

    Raises UserError where the brokers do not answer.
    """
    place = (kafka.topics().commits, 0)
    properties = {**kafka.properties(), "log_level": 0}
    try:
        if place[0] not in AdminClient(properties).list_topics(timeout=_TIMEOUT_SECONDS).topics:
            return Span({})
        # Kafka ends a transaction in one topic after the other: here it may still be open, when its records are read.
        written, give_up = end_offsets(properties, [place], committed=False)[place], time.monotonic() + _ENDED_SECONDS
        while (end := end_offsets(properties, [place])[place]) < written and time.monotonic() < give_up:
            time.sleep(0.05)
        # A log that was made anew, or lost its end, may be shorter than it was.
        first = max(begin_offsets(properties, [place])[place], begin if begin < end else 0)
        return Span({place: (first, end)})
    except KafkaException as error:
        where = f"topic {place[0]}, Kafka at {kafka.bootstrap_servers}"
        raise question_error(error.args[0], properties, where=where) from None

"""Reads the commit log of a topic to find arrivals: the times at which the topic's records were written to Kafka.

A record itself contains the time of its commit on the server. A commit log entry commits in one transaction with its
records; its time, in ms, is the producer's clock when the producer requested the commit from Kafka. The commit log is
compacted: if the entry for some records was removed, their arrival is unknown, and they are left out. Each commit uses
two offsets (the entry and the end of its transaction), so a larger step from one entry to the next shows that entries
between them were removed.
"""

import time

from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc.config.profile import Kafka
from cdc.kafka.errors import question_error
from cdc.kafka.partitions import begin_offsets, end_offsets
from cdc.kafka.topics import known_topics
from cdc.model.commit_entry import VERSION
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.records import messages
from cdc.spark.input.spans import Span

__all__ = ["SCHEMA", "intervals", "read_entries"]

_ENTRIES = "side STRING, offset BIGINT, next BIGINT, at_us BIGINT"
SCHEMA = "side STRING, since BIGINT, upto BIGINT, at_us BIGINT, offset BIGINT"

_ENDED_SECONDS = 1.0  # seconds after which the lag is computed without the open entry


def read_entries(spark: SparkSession, kafka: Kafka, *, side: str, resource: str, begin: int = 0) -> DataFrame:
    """Reads the entries for ``resource``, from which ``intervals`` computes the arrivals. The columns are side, offset,
    next and at_us.

    The log is read from the offset ``begin``. Unless ``begin`` is 0, the entry at ``begin`` only shows where the
    sequences of the next entry begin. Raises UserError if the brokers do not answer.
    """
    found = _span_of_log(kafka, begin)
    if not found.partitions:
        return local_frame(spark, [], _ENTRIES)
    read = messages(spark, found, options=kafka_options(kafka)).where(F.col("key") == F.lit(resource).cast("binary"))
    body = F.col("value").cast("string")
    # Entries of a newer format version may have another meaning, and are left out.
    known = F.coalesce(F.get_json_object(body, "$.version").cast("bigint"), F.lit(0)) <= VERSION
    next_one = F.when(known, F.get_json_object(body, "$.next_sequence").cast("bigint"))
    entries = read.select(
        F.lit(side).alias("side"), "offset", next_one.alias("next"), F.unix_micros("timestamp").alias("at_us")
    )
    return entries.where("next IS NOT NULL")


def intervals(entries: DataFrame) -> DataFrame:
    """Computes the times at which sequences of either side arrived in Kafka, from the ``entries`` of both commit logs.
    The columns of the result are in SCHEMA.

    The sequences of a row, after ``since`` up to ``upto``, arrived at ``at_us`` (µs since 1970); ``offset`` is the
    offset of the entry.
    """
    before = F.lag(F.struct("offset", "next")).over(Window.partitionBy("side").orderBy("offset"))
    found = entries.withColumn("before", before)
    first = F.when(F.col("offset") == 0, 0)
    adjacent = F.when(F.col("offset") - F.col("before.offset") <= 2, F.col("before.next"))
    found = found.withColumn("since", F.coalesce(adjacent, first) - 1)
    found = found.select("side", "since", (F.col("next") - 1).alias("upto"), "at_us", "offset")
    return found.where("since < upto")


def _span_of_log(kafka: Kafka, begin: int) -> Span:
    """Finds the offsets of the commit log from ``begin`` on; an empty span if there is no such topic.

    Raises UserError if the brokers do not answer.
    """
    partition = (kafka.topics().commits, 0)
    properties = {**kafka.properties(), "log_level": 0}
    try:
        if not known_topics(properties, [partition[0]]):
            return Span({})
        # Kafka commits a transaction in one topic after the other: the transaction may still be open in the commit log
        # when its records can already be read.
        written, give_up = (
            end_offsets(properties, [partition], committed=False)[partition],
            time.monotonic() + _ENDED_SECONDS,
        )
        while (end := end_offsets(properties, [partition])[partition]) < written and time.monotonic() < give_up:
            time.sleep(0.05)
        # A log that was deleted and created again, or that lost its newest messages, may be shorter than before.
        first = max(begin_offsets(properties, [partition])[partition], begin if begin < end else 0)
        return Span({partition: (first, end)})
    except KafkaException as error:
        where = f"topic {partition[0]}, Kafka at {kafka.bootstrap_servers}"
        raise question_error(error.args[0], properties, where=where) from None

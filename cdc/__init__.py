"""Replicates a MySQL leader to followers over Apache Kafka, and proves from the binlogs that a follower is equal.

The data path:

    leader's binlog → producer.binlog (events) → producer.decode (changes) → producer.sink (records) → Kafka
        topics of records, and a commit log: one entry with each Kafka transaction
    Kafka → consumer.source (transactions) → consumer.plan (SQL) → consumer.apply → consumer.follower (a session)
        the follower's tables, and with them the checkpoint (consumer.state)
    follower's binlog → a second producer, with follower_profile.toml → Kafka
    topics of leader and follower → spark.input → spark.streams, spark.ddl → spark.compare → spark.report

In cdc.producer, cdc.consumer and cdc.spark (the audit), the module ``pipeline`` connects the parts of the program.
cdc.tail prints records. cdc.reader iterates over records in Python, cdc.producer.binlog_reader over a binlog without
Kafka. cdc.sandbox runs real servers. The programs share kafka, service, config, sql, model and errors; in this order,
each imports only later ones.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The name is imported when it is used (__init__.pyi declares it): all programs and Spark's executors import cdc,
    # and not all of them have, or need, a client of Kafka.
    if name == "records":
        return import_module("cdc.reader.records").records
    if name == "binlog":
        return import_module("cdc.producer.binlog_reader").binlog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

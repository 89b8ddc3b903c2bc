"""Replicates a MySQL leader to followers over Apache Kafka, and proves from the binlogs that a follower is equal.

The data path:

    leader's binlog → producer.binlog (events) → producer.decode (changes) → producer.sink (records) → Kafka
        topics of records, and a commit log: one entry with each Kafka transaction
    Kafka → consumer.source (transactions) → consumer.plan (SQL) → consumer.apply → consumer.follower (a session)
        the follower's tables, and with them the checkpoint (consumer.state)
    follower's binlog → a second producer, with follower_profile.toml → Kafka
    both leader's and follower's topics → spark.input → spark.streams, spark.ddl → spark.compare → spark.report

Each program is wired in its ``pipeline``: cdc.producer, cdc.consumer, cdc.spark (the audit); cdc.tail prints records,
cdc.sandbox runs real servers. They share, each built on the next: kafka, service, config and sql, model, errors.
"""

__version__ = "0.1.0"

"""Leader-to-follower MySQL replication over Apache Kafka, with proof.

The data path:

    leader binlog - binlog_source - decoder - router - kafka_sink --> topic + commit log     cdc.producer
    topic - kafka_source - assembler - planner - statements - applier --> follower           cdc.consumer
    follower binlog - the same producer, follower_profile.toml --> follower topic
    both topics - topics - watermark - fold - drift - report --> verdict                     cdc.spark

The programs share only the modules beside this file; real servers to try them on come from cdc.sandbox.
"""

__version__ = "0.1.0"

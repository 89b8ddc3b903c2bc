"""Kafka as producer, consumer, cdc-tail and audit read it: partitions, the commit log, errors."""

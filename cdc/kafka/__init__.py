"""Kafka as all programs read it: partitions, the commit log, topics merged by sequence, and what errors mean."""

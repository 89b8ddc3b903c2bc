"""Reads Kafka for all programs: partitions, the commit log, topics merged by sequence, the meaning of errors."""

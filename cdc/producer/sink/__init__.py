"""Turns changes into Kafka messages, and commits these to Kafka, exactly once."""

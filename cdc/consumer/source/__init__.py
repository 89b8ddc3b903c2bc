"""Reads records from Kafka, and assembles complete transactions of the leader, in the leader's order."""

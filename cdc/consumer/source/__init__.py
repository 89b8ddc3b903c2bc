"""Reads records from Kafka and assembles whole leader transactions, in the leader's order."""

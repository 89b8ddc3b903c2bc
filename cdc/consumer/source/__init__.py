"""Records from Kafka to whole leader transactions, in the leader's order."""

"""Kafka to the follower: cdc-consumer."""

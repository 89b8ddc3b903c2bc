"""Measures how long transactions took from the leader to Kafka, and to the follower."""

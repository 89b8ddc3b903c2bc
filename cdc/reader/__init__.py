"""Reads a leader's records from Kafka in order: for cdc-tail, and for Python (``from cdc import records``)."""

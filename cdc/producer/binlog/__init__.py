"""Reads the leader's binlog as raw events."""

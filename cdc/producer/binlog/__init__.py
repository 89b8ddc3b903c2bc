"""The leader's binlog as raw events."""

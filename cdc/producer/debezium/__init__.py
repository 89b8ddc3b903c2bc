"""Converts records to the messages that Debezium's MySQL connector writes for the same changes."""

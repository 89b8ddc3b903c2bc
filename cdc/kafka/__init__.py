"""Reads Kafka for all programs: partitions, the commit log, and topics merged by sequence. Also translates Kafka's
errors.
"""

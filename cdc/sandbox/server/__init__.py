"""Runs server processes, mysqld and Kafka, finds free ports, and kills the servers when the process that started them
ends."""

"""Runs server processes (mysqld, mariadbd, Kafka), finds free ports, and kills the servers when the process that
started them ends."""

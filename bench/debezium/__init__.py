"""Runs Debezium with its JDBC sink and cdc on one leader, and compares what reaches the follower of each."""

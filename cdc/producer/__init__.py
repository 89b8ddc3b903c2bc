"""cdc-producer: writes the leader's binlog to Kafka."""

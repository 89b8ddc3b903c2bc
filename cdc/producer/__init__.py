"""Leader binlog to Kafka: cdc-producer."""

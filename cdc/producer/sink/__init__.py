"""Changes to Kafka messages, and these into Kafka, exactly once."""

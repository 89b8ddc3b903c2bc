"""Real servers without Docker: mysqld and Kafka for the demo, the tests and users trying it."""

"""Server processes: mysqld and Kafka, their ports, and what ends them with their parent."""

"""Server processes: mysqld and Kafka, their ports, and the guard that kills them when their starter dies."""

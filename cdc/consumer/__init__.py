"""The program cdc-consumer: applies records from Kafka to the follower."""

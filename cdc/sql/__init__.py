"""What a statement's text says: read by the producer, and by the consumer before it runs it."""

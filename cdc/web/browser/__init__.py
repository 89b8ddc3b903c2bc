"""Shows the records of streams, and the messages of all topics of their clusters."""

"""The program cdc-seed: builds a new follower from a leader's topics, and loads each row only in its final state."""

"""The program cdc-seed: builds a new follower from a leader's topics, and loads only the final state of each row."""

"""The program cdc-seed: builds a new follower from a leader's topics. Each row is loaded only in its final state."""

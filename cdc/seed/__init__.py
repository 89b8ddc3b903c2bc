"""cdc-seed: makes a new follower of a leader's topics, with the rows that are left and not all that became of them."""

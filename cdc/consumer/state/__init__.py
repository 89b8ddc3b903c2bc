"""The consumer's own tables on the follower (checkpoint, ledger, conflicts), and the status that is read from them."""

"""The consumer's own tables in the follower: checkpoint, ledger, conflicts; and the status read from them."""

"""The program cdc-repair: makes the leader's producer send drifted rows again, so that followers get them."""

"""The program cdc-repair: has the leader's producer send drifted rows again, so that followers get them."""

"""The program cdc-repair: requests the drifted rows of followers from the leader's producer, which sends them again, so
that the followers correct them."""

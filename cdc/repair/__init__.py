"""The program cdc-repair: requests that the leader's producer sends drifted rows again, so that followers correct
them."""

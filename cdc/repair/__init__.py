"""Asks the leader's producer to send the rows again that an audit found drifted, so that followers get them."""

"""The program cdc-repair: requests from the leader's producer the rows in which followers have drifted. The producer
sends these rows again, so that the followers correct them.
"""

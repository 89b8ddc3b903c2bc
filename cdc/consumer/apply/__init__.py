"""Batches and statements executed on the follower, in serial, in parallel, or row by row."""

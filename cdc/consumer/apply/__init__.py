"""Executes batches and DDL statements on the follower: serially, in parallel, or row by row."""

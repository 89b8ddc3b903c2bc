"""Runs the audit as a Spark job: options, session, repeated runs, filtered output."""

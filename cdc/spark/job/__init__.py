"""The audit as a Spark job: options, session, repeated runs, what Spark prints."""

"""Runs the audit as a Spark job: parses its options, starts Spark, repeats the audit, and filters Spark's output."""

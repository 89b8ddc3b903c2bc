"""The audit on Spark: both topics folded to one sequence and compared."""

"""Downloads MySQL from Debian's packages, and Kafka and Spark's connector from Maven Central."""

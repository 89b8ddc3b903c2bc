"""Downloads: MySQL from Debian's packages, Kafka and Spark's connector from Maven Central."""

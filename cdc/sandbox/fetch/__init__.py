"""Downloads MySQL and MariaDB from Debian's archive, and the jars of Kafka and of Spark's extensions from Maven
Central.
"""

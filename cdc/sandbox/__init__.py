"""Runs real servers without Docker: mysqld and Kafka for the demo, the tests, and users who try cdc.

    MySql(folder, port=…, server_id=…).start()      server/mysql.py; fetch/mysql_programs.py finds the programs
    Kafka(folder, port=…).start()                   server/kafka.py; fetch/jars.py fetches the jars
    Servers(folder, …).start()                      servers.py; starts leader, follower and Kafka together

Each server is one Process (server/process.py). Everything is downloaded only once, into a cache (fetch/cache.py).
"""

"""Runs real servers without Docker: mysqld and Kafka for the demo, the tests, and users who try cdc.

    MySql(folder, port=…, server_id=…).start()      server/mysql.py, programs by fetch/mysql_programs.py
    Kafka(folder, port=…).start()                   server/kafka.py, jars by fetch/jars.py
    Servers(folder, …).start()                      servers.py: leader, follower and Kafka together

Each server is one Process (server/process.py). Downloads happen once, into the folder of fetch/cache.py.
"""

"""Real servers without Docker: mysqld and Kafka for the demo, the tests and users trying it.

    MySql(folder, port=…, server_id=…).start()      mysql.py, from programs found by mysql_programs.py or debian.py
    Kafka(folder, port=…).start()                   kafka.py, from jars fetched by jars.py
    Servers(folder, …).start()                      servers.py: leader, follower and Kafka together

Each server is one Process (process.py); downloads happen once, into the folder of cache.py.
"""

"""The engine of the topic browser: finds records by table, key, time, GTID or kind, and reads messages of any topic."""

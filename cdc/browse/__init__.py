"""The topic browser's engine: finds records by table, key, time, GTID or kind, and reads messages of any topic."""

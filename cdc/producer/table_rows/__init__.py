"""The rows of a table as the leader shows them to a SELECT, in the words of the binlog's records."""

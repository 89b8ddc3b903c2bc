"""What a stream is made of: records, values, URIs, binlog positions. Pure: no driver, no I/O."""

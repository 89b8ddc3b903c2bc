"""The data that programs exchange: records, values, URIs, positions, commit log entries. Pure: no driver, no I/O."""

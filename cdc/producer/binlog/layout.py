"""Named byte offsets and sizes of packets and binlog events, for code that reads them without a parser.

Sources: MySQL protocol documentation, "MySQL Packets" and "COM_BINLOG_DUMP"; MySQL source, libs/mysql/binlog/event
(control_events.h, rows_event.h, statement_events.h) and its documentation, "Binlog Event". Integers are little-endian.
An offset counts from the first byte of the event's header unless its name says PACKET.
"""

# A packet: length (3 bytes), sequence number (1), payload. A payload of the largest size continues in the next packet.
PACKET_HEADER_BYTES = 4
PACKET_LENGTH_MASK = 0xFFFFFF  # of the first four bytes, read as one integer
LARGEST_PAYLOAD = 0xFFFFFF
# The first byte of a payload in a dump.
STATUS_BYTES = 1
STATUS_EVENT, STATUS_END, STATUS_ERROR = 0, 0xFE, 0xFF
PACKET_EVENT_AT = PACKET_HEADER_BYTES + STATUS_BYTES

# Every event: timestamp (4), type (1), server id (4), event length (4), next position (4), flags (2); then its own
# fields; then a CRC-32, unless the format description of the file says that there is none.
TYPE_AT = 4
LENGTH_AT = 9
NEXT_POSITION_AT = 13
HEADER_BYTES = 19
CHECKSUM_BYTES = 4

# Table map and rows events: table id (6), flags (2). The names of a table map, and the extra data of a rows event with
# its own length (2) in front, follow.
TABLE_ID_BYTES = 6
TABLE_ID = slice(HEADER_BYTES, HEADER_BYTES + TABLE_ID_BYTES)
ROWS_FLAGS_AT = HEADER_BYTES + TABLE_ID_BYTES
TABLE_MAP_NAMES_AT = ROWS_FLAGS_AT + 2
ROWS_EXTRA_AT = ROWS_FLAGS_AT + 2
ROWS_EXTRA_LENGTH_BYTES = 2  # the length counts itself

# GTID: flags (1), UUID (16), number (8), type of the logical clock (1), last committed (8), sequence number (8), commit
# time in microseconds (7).
GTID_UUID_AT = HEADER_BYTES + 1
GTID_LAST_COMMITTED = slice(GTID_UUID_AT + 16 + 8 + 1, GTID_UUID_AT + 16 + 8 + 1 + 8)
GTID_SEQUENCE_NUMBER = slice(GTID_LAST_COMMITTED.stop, GTID_LAST_COMMITTED.stop + 8)

# Query: thread (4), seconds (4), length of the database name (1), error code (2), length of the status variables (2).
QUERY_STATUS_VARIABLES_AT = HEADER_BYTES + 13

# Xid: the number of the transaction.
XID_BYTES = 8
XID = slice(HEADER_BYTES, HEADER_BYTES + XID_BYTES)

# Rotate: the position in the next file (8), and the name of that file.
ROTATE_POSITION = slice(HEADER_BYTES, HEADER_BYTES + 8)
ROTATE_FILE_AT = HEADER_BYTES + 8

# Format description: version of the format (2), version of the server (50), time (4); its last byte is the checksum
# algorithm (0 none, 1 CRC-32).
FORMAT_VERSION = slice(HEADER_BYTES, HEADER_BYTES + 2)
FORMAT_SERVER = slice(FORMAT_VERSION.stop, FORMAT_VERSION.stop + 50)
FORMAT_CREATED = slice(FORMAT_SERVER.stop, FORMAT_SERVER.stop + 4)

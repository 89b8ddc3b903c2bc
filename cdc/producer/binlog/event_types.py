"""The types of binlog events of MySQL 8.0 to 9.7 in three lists: handled, harmless, fatal. A type in no list is fatal.

Numbers: MySQL source, libs/mysql/binlog/event/binlog_event.h, enum Log_event_type.
"""

__all__ = ["FATAL", "HANDLED", "HARMLESS", "NAMES"]

QUERY, STOP, ROTATE, FORMAT_DESCRIPTION, XID = 2, 3, 4, 15, 16
TABLE_MAP, HEARTBEAT, IGNORABLE, ROWS_QUERY = 19, 27, 28, 29
# Rows events of version 1, which old versions of MySQL log. The decoder reads only their table id, not their rows.
OTHER_ROWS = frozenset({23, 24, 25})
# Events that belong to the statement after them: Intvar, Rand, UserVar, the data of LOAD DATA.
OF_A_STATEMENT = frozenset({5, 13, 14, 9, 11, 17})
EXECUTE_LOAD_QUERY = 18
# A PARTIAL_UPDATE_ROWS event contains updates whose after-images may contain differences in place of JSON documents.
WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS, PARTIAL_UPDATE_ROWS = ROWS = 30, 31, 32, 39
UPDATES = frozenset({UPDATE_ROWS, PARTIAL_UPDATE_ROWS})
GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE, HEARTBEAT_V2 = 33, 34, 35, 36, 37, 41
XA_PREPARE, TRANSACTION_PAYLOAD, GTID_TAGGED = 38, 40, 42
MARIADB_GTID = 162  # the only event of MariaDB that reaches the decoder: cdc.producer.flavor translates the others
# No server logs these types: cdc.producer.flavor assigns them to events of MariaDB that can't be translated.
MARIADB_PHASE, MARIADB_UNREADABLE = 253, 254
GTIDS = frozenset({GTID, ANONYMOUS_GTID, GTID_TAGGED, MARIADB_GTID})
HEARTBEATS = frozenset({HEARTBEAT, HEARTBEAT_V2})
# Events of these types that take several packets are written to disk. Differences of JSON documents can't be applied on
# disk, so partial updates are not among these types.
SPOOLED = frozenset({TRANSACTION_PAYLOAD, WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS})
# Records contain the content of these events that passes the filters. Events of all other types are in no record.
IN_RECORDS = frozenset({QUERY, TABLE_MAP, *ROWS})

HANDLED = frozenset(
    {QUERY, ROTATE, FORMAT_DESCRIPTION, XID, TABLE_MAP, HEARTBEAT, HEARTBEAT_V2, GTID, ANONYMOUS_GTID, MARIADB_GTID}
    | {*ROWS, TRANSACTION_PAYLOAD, XA_PREPARE, GTID_TAGGED}
    | {EXECUTE_LOAD_QUERY, *OF_A_STATEMENT}
)

# MariaDB from version 11.3 on logs these events inside of a transaction without their positions. The types from 160 on
# are MariaDB's own.
INSIDE_TRANSACTIONS = frozenset({QUERY, TABLE_MAP, *ROWS, *OF_A_STATEMENT, 23, 24, 25, 160, 165, 166, 167, 168})

HARMLESS = {
    STOP: "the server shut down cleanly; the next file starts with a new format description",
    IGNORABLE: "marked by the server as safe to ignore",
    ROWS_QUERY: "the text of the statement whose rows follow; the rows have everything",
    PREVIOUS_GTIDS: "what earlier files held; the position comes from each transaction's own GTID",
    TRANSACTION_CONTEXT: "group replication's certification data of a transaction that was committed",
    VIEW_CHANGE: "group replication's membership change; no data",
}

_OLD = "the leader must be MySQL 8.0 or newer, with binlogs that it wrote itself"
# Maps each fatal type to the hint of its error: each of these events is a change that could not be replicated
# faithfully.
FATAL = {
    0: _OLD, 1: _OLD, 6: _OLD, 7: _OLD, 8: _OLD, 10: _OLD, 12: _OLD,
    20: _OLD, 21: _OLD, 22: _OLD, 23: _OLD, 24: _OLD, 25: _OLD,
    26: "the leader's own log lost events: make a fresh copy of the leader",
    MARIADB_PHASE: "an ALTER TABLE was logged in two phases: SET GLOBAL binlog_alter_two_phase = OFF on the leader, do "
    "the ALTER TABLE on the follower by hand, and skip both its phases",
    MARIADB_UNREADABLE: "this MariaDB writes events that this version of cdc does not know",
}  # fmt: skip

NAMES = {
    0: "Unknown", 1: "StartV3", 2: "Query", 3: "Stop", 4: "Rotate", 5: "Intvar", 6: "Load", 7: "Slave",
    8: "CreateFile", 9: "AppendBlock", 10: "ExecLoad", 11: "DeleteFile", 12: "NewLoad", 13: "Rand", 14: "UserVar",
    15: "FormatDescription", 16: "Xid", 17: "BeginLoadQuery", 18: "ExecuteLoadQuery", 19: "TableMap",
    20: "WriteRowsV0", 21: "UpdateRowsV0", 22: "DeleteRowsV0", 23: "WriteRowsV1", 24: "UpdateRowsV1",
    25: "DeleteRowsV1", 26: "Incident", 27: "Heartbeat", 28: "Ignorable", 29: "RowsQuery", 30: "WriteRows",
    31: "UpdateRows", 32: "DeleteRows", 33: "Gtid", 34: "AnonymousGtid", 35: "PreviousGtids",
    36: "TransactionContext", 37: "ViewChange", 38: "XaPrepare", 39: "PartialUpdateRows", 40: "TransactionPayload",
    41: "HeartbeatV2", 42: "GtidTagged", 162: "MariaDbGtid",
    MARIADB_PHASE: "a phase of ALTER TABLE in MariaDB", MARIADB_UNREADABLE: "unreadable, of MariaDB",
}  # fmt: skip

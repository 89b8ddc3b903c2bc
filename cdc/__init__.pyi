from cdc.producer.binlog_reader import binlog as binlog
from cdc.reader.records import records as records

__version__: str

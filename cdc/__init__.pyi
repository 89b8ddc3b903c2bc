from cdc.reader.records import records as records

__version__: str

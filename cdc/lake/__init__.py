"""The program cdc-lake: keeps a lake of Delta, Iceberg or Parquet tables equal to a leader's tables, from the leader's
topics alone."""

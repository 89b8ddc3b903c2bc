"""The program cdc-lake: keeps a lake of Delta or Iceberg tables equal to a leader's, from its topics alone."""

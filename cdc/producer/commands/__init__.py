"""The other commands of ``cdc-producer``: a dry run, the status of table copies, requests for copies."""

"""The program cdc-tail: prints the records of a leader's topics."""

"""What ``cdc-producer`` does beside replicating: says what it would do, shows copies of tables, asks for them."""

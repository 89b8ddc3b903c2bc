"""Values of records as SQL literals and conditions. Pure."""

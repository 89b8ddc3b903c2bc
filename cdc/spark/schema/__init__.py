"""Tables over time: definitions, renames, and what the filters let in."""

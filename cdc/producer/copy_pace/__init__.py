"""How fast tables are copied: as fast as leader and followers allow, and how that is told."""

"""What differs between the leaders of MySQL and of MariaDB: settings, positions, events, types."""

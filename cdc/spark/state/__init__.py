"""What an audit keeps on disk, so that the next one reads only what is new."""

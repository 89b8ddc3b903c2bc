"""The outcome of an audit as JSON, as sentences and on a terminal."""

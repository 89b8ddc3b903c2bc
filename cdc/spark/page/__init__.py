"""report.html: the outcome of an audit as one HTML page."""

"""A soak: hours of appends to lists, DDL and audits, judged while it runs. It goes on where it ended before."""

"""Which host is read, and from where."""

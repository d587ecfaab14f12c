"""Which host the reader reads, and from which position."""

"""Message formats, one module each."""

"""Change events, positions, the stream contract, wire formats and the runtime of the services."""

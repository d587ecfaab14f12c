"""Which changes go where, and how much of them is told: `publisher.routes`."""

"""The demo: replicate a shop under load through all services into a lake, and compare each table with its mirror."""

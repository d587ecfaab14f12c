"""The demo: replicate a shop under load through all services into a lake, and compare every table there."""

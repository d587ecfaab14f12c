"""Reads the binlog like a replica and appends its events to the Redis stream."""

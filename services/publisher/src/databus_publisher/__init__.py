"""Writes the events of the Redis stream to Kafka, by default exactly once."""

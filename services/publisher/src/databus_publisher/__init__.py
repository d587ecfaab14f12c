"""Writes the events of the Redis stream to Kafka, exactly once."""

"""Decoders of the formats: records of Kafka to changes."""

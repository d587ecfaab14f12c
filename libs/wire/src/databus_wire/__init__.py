"""Compiled code that writes rows as JSON and base64, and Kafka's records."""

"""Rows and records as bytes, compiled: JSON and base64 of rows, and Kafka's records."""

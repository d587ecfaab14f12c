"""Loads tables, chunk by chunk, and inserts their rows into the stream where they are exact (ADR 14)."""

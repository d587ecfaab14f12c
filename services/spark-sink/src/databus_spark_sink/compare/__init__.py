"""Compares mirrors with their tables in the database."""

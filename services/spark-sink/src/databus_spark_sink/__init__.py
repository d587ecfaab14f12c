"""Keeps a change log and a live mirror of the tables in a lake."""

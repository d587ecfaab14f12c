"""Keeps the lake small: compacts files, and deletes those that are not needed any more."""

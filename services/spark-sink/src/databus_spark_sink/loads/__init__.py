"""Loads mirrors from dumps: the first time, when tables are parked, and when an operator asks for it."""

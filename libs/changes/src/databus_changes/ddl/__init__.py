"""Computes, from the text of a DDL statement and the tables before it, the tables after it.

A statement is split into `Token`s once (tokens.py) and classified as a `Statement` (statement.py). The same tokens are
used to apply the statement to the known tables (apply.py): a `TableDraft` collects the statement's changes, with each
column as a `ColumnDefinition`, and builds the new table.
"""

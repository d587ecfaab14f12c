"""Computes the tables after a DDL statement from its text and the tables before it.

A statement is split into `Token`s once (tokens.py) and classified as a `Statement` (statement.py). From the same tokens
it is applied to the known tables (apply.py): a `TableDraft` collects the statement's changes, with each column as a
`ColumnDefinition`, and builds the new table.
"""

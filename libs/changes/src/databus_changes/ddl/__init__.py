"""DDL: from the text of a statement to the tables it leaves behind.

A statement is split into `Token`s once (tokens.py) and classified as a `Statement` (statement.py). What it makes of
known tables (apply.py) is read from the same tokens: each column as a `ColumnDefinition`, collected with all other
changes in a `TableDraft`, from which the new table is built.
"""

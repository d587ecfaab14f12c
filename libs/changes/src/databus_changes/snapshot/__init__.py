"""Rows of tables as of a position: `connection` logs in, `view` opens read views, `select` builds the queries."""

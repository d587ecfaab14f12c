"""Recognizes ALTER TABLE statements that remove or replace rows. Of these rows, a server logs nothing.

Other actions keep the rows, though they may change values, for example by converting a column: consumers learn of these
changes from the statement.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from databus_changes.ddl.token import Token

#: words that no other action has next to each other; the first word may be a name if PARTITION BY follows it
_PARTITION_ACTIONS = {(verb, "PARTITION") for verb in ("EXCHANGE", "TRUNCATE", "DROP", "DISCARD", "IMPORT", "CONVERT")}
#: those that move rows from or to the table whose name follows the next TABLE; the last two are MariaDB's
_MOVES = {("EXCHANGE", "PARTITION"), ("CONVERT", "PARTITION"), ("CONVERT", "TABLE")}
#: the last words of the actions on whole tablespaces, which no other action may follow
_TABLESPACE_ACTIONS = {("DISCARD", "TABLESPACE"), ("IMPORT", "TABLESPACE")}
#: MariaDB's action that deletes the old versions of rows
_DROP_VERSIONS = ["DROP", "SYSTEM", "VERSIONING"]
#: what precedes ENGINE in CHANGE COLUMN IF EXISTS engine blackhole INT
_BEFORE_COLUMN = {"CHANGE", "COLUMN", "EXISTS"}


def removes_rows(tokens: Sequence[Token]) -> bool:
    """Return whether an ALTER TABLE may remove or replace rows of the table that it alters.

    With IGNORE, it deletes the rows that a new unique key does not allow (MariaDB, and MySQL before 5.7.4). The engine
    BLACKHOLE keeps no rows.
    """
    outer = _outside_parentheses(tokens)
    words = [token.keyword for token in outer]
    ignores = "IGNORE" in words[: words.index("TABLE")]
    partitions = any(
        pair in _PARTITION_ACTIONS | _MOVES and after != "BY"
        for pair, after in zip(pairwise(words), [*words[2:], ""], strict=True)
    )
    versions = any(words[index : index + 3] == _DROP_VERSIONS for index in range(len(words)))
    return ignores or partitions or versions or tuple(words[-2:]) in _TABLESPACE_ACTIONS or _is_blackhole(outer)


def partner(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens from the name of the table on that an ALTER TABLE exchanges rows with; none without one."""
    words = [token.keyword for token in tokens]
    for index, pair in enumerate(pairwise(words)):
        if pair in _MOVES and "TABLE" in words[index + 1 :]:
            return tokens[words.index("TABLE", index + 1) + 1 :]
    return ()


def _is_blackhole(outer: Sequence[Token]) -> bool:
    """Return whether a table option is ENGINE [=] BLACKHOLE."""
    words = [token.keyword for token in outer]
    for index, word in enumerate(words):
        if word == "ENGINE" and words[index - 1] not in _BEFORE_COLUMN:
            name = outer[index + 1 + (words[index + 1 : index + 2] == ["="]) :][:1]
            if [token.raw.strip("'\"`").upper() for token in name] == ["BLACKHOLE"]:
                return True
    return False


def _outside_parentheses(tokens: Sequence[Token]) -> list[Token]:
    depths = accumulate((token.keyword == "(") - (token.keyword == ")") for token in tokens)
    return [token for token, depth in zip(tokens, depths, strict=True) if not depth]

"""Recognizes DML that can reach other tables only through its targets: their triggers, views and foreign keys.

Any other DML may call a stored function, which may change any table, or read a view, which may call one.
"""

from collections.abc import Sequence

from databus_changes.ddl.token import Token

_MODIFIERS = {"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK"}
#: what precedes the name of the target of an INSERT, REPLACE or LOAD, which may have a list of columns
_BEFORE_TARGET = {"INTO", "TABLE", "INSERT", "REPLACE"} | _MODIFIERS - {"QUICK"}
#: reserved words that may precede a parenthesis, and call nothing
_RESERVED = {
    "VALUES", "IN", "AND", "OR", "XOR", "NOT", "ON", "WHERE", "WHEN", "THEN", "ELSE", "CASE", "BETWEEN", "LIKE", "DIV",
    "INTERVAL", "BY", "KEY", "INDEX", "LINES", "PARTITION", "BINARY", "CHAR", "VARCHAR", "DECIMAL", "DOUBLE",
}  # fmt: skip
#: common functions of every release; stored functions of the same names are called only with a schema or a space
_FUNCTIONS = {
    "ABS", "ADDDATE", "CAST", "CEIL", "CEILING", "CHAR_LENGTH", "COALESCE", "CONCAT", "CONCAT_WS", "CONVERT",
    "CRC32", "CURDATE", "CURRENT_DATE", "CURRENT_TIMESTAMP", "CURTIME", "DATE", "DATE_ADD", "DATE_FORMAT",
    "DATE_SUB", "DEFAULT", "FLOOR", "FROM_UNIXTIME", "GREATEST", "HEX", "IF", "IFNULL", "LAST_INSERT_ID", "LEAST",
    "LEFT", "LENGTH", "LOCALTIMESTAMP", "LOWER", "LPAD", "LTRIM", "MD5", "MOD", "NOW", "NULLIF", "POW", "RAND",
    "REPLACE", "RIGHT", "ROUND", "RPAD", "RTRIM", "SHA1", "SHA2", "STR_TO_DATE", "SUBDATE", "SUBSTR", "SUBSTRING",
    "SYSDATE", "TRIM", "TRUNCATE", "UNHEX", "UNIX_TIMESTAMP", "UPPER", "UTC_TIMESTAMP", "UUID",
}  # fmt: skip
_ORACLE = 1 << 9  # of MariaDB's sql_mode: a function may be called without parentheses


def is_plain(tokens: Sequence[Token], sql_mode: int) -> bool:
    """Return whether DML with known targets names no other table, and calls no function that may be a stored one."""
    words = [token.keyword for token in tokens]
    first = next((index for index, word in enumerate(words) if index and word not in _MODIFIERS), 0)
    if {"SELECT", "WITH"} & set(words) or sql_mode & _ORACLE:
        return False
    if words.count("TABLE") > (words[0] == "LOAD"):
        return False
    if words[0] == "DELETE" and (words[first] != "FROM" or "USING" in words):  # one that also reads tables
        return False
    calls = (index for index, word in enumerate(words) if word == "(" and index)
    return all(_is_harmless(tokens, index) for index in calls)


def _is_harmless(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the parenthesis at `index` belongs to no call, or to one of a function of the server."""
    before = tokens[index - 1]
    if not before.is_name or before.keyword in _RESERVED:
        return True
    is_qualified = index > 2 and tokens[index - 2].keyword == "."
    start = index - (3 if is_qualified else 1)
    if start > 0 and tokens[start - 1].keyword in _BEFORE_TARGET:
        return True
    adjacent = before.start + len(before.raw) == tokens[index].start
    return adjacent and not is_qualified and before.keyword in _FUNCTIONS

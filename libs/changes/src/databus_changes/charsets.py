"""Names of character sets and collations, and the size of their characters."""

#: character set → bytes of its longest character, if more than one
_WIDTH = {
    "utf8mb4": 4, "utf8mb3": 3, "utf8": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "ucs2": 2, "gbk": 2, "gb2312": 2,
    "gb18030": 4, "big5": 2, "sjis": 2, "cp932": 2, "euckr": 2, "ujis": 3, "eucjpms": 3,
}  # fmt: skip


def character_width(charset: str) -> int:
    """Return the bytes of the longest character in a character set."""
    return _WIDTH.get(charset, 1)


def charset_of(collation: str) -> str:
    """Return the character set that a collation's name begins with; "" if there is none (MariaDB's uca1400_ai_ci)."""
    charset = collation.lower().partition("_")[0]
    return "" if charset.startswith("uca") else charset_name(charset)


def charset_name(name: str) -> str:
    """Return a character set's name as current servers print it."""
    return {"utf8": "utf8mb3"}.get(name.lower(), name.lower())

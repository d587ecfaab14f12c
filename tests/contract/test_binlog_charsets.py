"""Every character set is decoded as each kind of server converts it to UTF-8, compared code by code."""

from collections.abc import AsyncIterator
from itertools import chain
from typing import NamedTuple

import pytest

from common.connections import session_on
from databus_binlog.charsets import UTF8, multi_byte, single_byte_table, to_text
from databus_binlog.collations import DEFAULT_COLLATIONS
from databus_binlog.session import Session
from devstack import Server


class Codes(NamedTuple):
    """Codes of a character set, made by SQL."""

    sql: str  #: expression for the code with number `n`, from 0 on
    count: int


#: all bytes from 80 on
HIGH_BYTES = Codes("UNHEX(HEX(0x80 + n))", 0x80)
#: all pairs of a high byte and any byte
PAIRS = Codes("UNHEX(HEX(0x8000 + n))", 0x8000)
#: all codes of three bytes from 8FA000 to 8FFFFF
TRIPLES = Codes("CONCAT(x'8f', UNHEX(HEX(0xa000 + n)))", 0x6000)
#: a sample of GB 18030's codes of four bytes
QUADRUPLES = Codes(
    "UNHEX(CONCAT(HEX(129 + n DIV 120), HEX(48 + n DIV 12 MOD 10), HEX(129 + n * 37 MOD 126), HEX(48 + n MOD 10)))",
    126 * 120,
)
#: every seventh unit of 16 bits
UNITS = Codes("UNHEX(LPAD(HEX(n * 7), 4, '0'))", 0x10000 // 7)
#: every surrogate followed by each of DBFE to DC01, which are two high and two low surrogates
SURROGATES = Codes("UNHEX(HEX(0xd800dbfe + n DIV 4 * 0x10000 + n MOD 4))", 0x800 * 4)
#: all units of 32 bits up to U+FFFF
BASIC_PLANE = Codes("UNHEX(LPAD(HEX(n), 8, '0'))", 0x10000)
#: every 41st unit of 32 bits, to beyond the end of Unicode
WIDE_UNITS = Codes("UNHEX(LPAD(HEX(n * 41), 8, '0'))", 0x120000 // 41)

#: the codes that are compared, by multi-byte set; for each set that is not listed: HIGH_BYTES and PAIRS
CODES = {
    "ucs2": [UNITS],
    "utf16": [UNITS, SURROGATES],
    "utf16le": [UNITS],
    "utf32": [WIDE_UNITS],
    "ujis": [HIGH_BYTES, PAIRS, TRIPLES],
    "eucjpms": [HIGH_BYTES, PAIRS, TRIPLES],
    "gb18030": [HIGH_BYTES, PAIRS, QUADRUPLES],
}

#: text in the script of each set, if possible with a character that Python's codec converts differently than the server
SAMPLES = {
    "armscii8": "Հայաստան, Երեւան",
    "ascii": "plain",
    "big5": "許功蓋十銹裏",
    "cp1250": "Příliš žluťoučký kůň",
    "cp1251": "Съешь ещё булок",
    "cp1256": "گفتگو پژ",
    "cp1257": "Ąžuolas ģērbj",
    "cp850": "Ünïcødé ┌─┐",
    "cp852": "Zażółć gęślą jaźń",
    "cp866": "Съешь ещё ░",
    "cp932": "①髙橋﨑ソ～",
    "dec8": "Œuvre Ÿ ¤",
    "eucjpms": "①髙橋﨑ソ～ｱｲ鄧",
    "euckr": "한국어 똠방각하 뷁",
    "gb18030": "简体繁體한글😀ḿ",
    "gb2312": "简体中文",
    "gbk": "简体繁體镕",
    "geostd8": "საქართველო №",
    "greek": "Ξεσκεπάζω ΄",
    "hebrew": "שלום עולם",
    "hp8": "Šš Ÿ ₤ ■",
    "keybcs2": "Příliš žluťoučký kůň ┌─┐",
    "koi8r": "Съешь ещё ▒",
    "koi8u": "Ґанок їжак є",
    "latin1": "Élan €5 „ß“",
    "latin2": "Zażółć gęślą jaźń",
    "latin5": "İstanbul ğış",
    "latin7": "Ąžuolas ģērbj",
    "macce": "Příliš žluťoučký",
    "macroman": "Élan ≠ Ω",
    "sjis": "表ソ能力ｱｲ〜",
    "swe7": "Åsa Öberg é",
    "tis620": "ภาษาไทย",
    "ucs2": "日本é",
    "ujis": "表ソ能力ｱｲ〜丂",
    "utf16": "日本😀",
    "utf16le": "日本😀",
    "utf32": "日本😀",
    "utf8mb3": "日本é",
    "utf8mb4": "日本😀",
}


@pytest.fixture
async def queries(source: Server) -> AsyncIterator[Session]:
    """A session in which `numbers` can be long, and which keeps no warnings: every invalid code causes one."""
    async with session_on(source) as session:
        limit = "cte_max_recursion_depth" if session.server.flavor == "mysql" else "max_recursive_iterations"
        await session.query(f"SET SESSION {limit} = 1000000, max_error_count = 0")
        yield session


@pytest.fixture
async def charsets(queries: Session) -> list[str]:
    """Names of the server's character sets, without `binary`."""
    known = await queries.query(
        "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME <> 'binary'"
    )
    return [name for (name,) in known]


def numbers(count: int) -> str:
    """Return the beginning of a statement that selects n = 0, 1, … from `numbers`."""
    return f"WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count - 1})"


async def converted(queries: Session, charset: str, codes: Codes) -> list[tuple[bytes, bytes | None]]:
    """Return codes and what the server converts them to: UTF-8, or None if it refuses or can't convert a code."""
    # An exclamation mark follows each code: at the end of a text in eucjpms, MySQL accepts any single byte, although it
    # refuses to store such a text.
    code = f"CONCAT({codes.sql}, CONVERT(CONVERT('!' USING {charset}) USING binary))"
    text = f"CONVERT({code} USING {charset})"
    rows = await queries.query(
        f"{numbers(codes.count)} SELECT HEX({code}), HEX({text}), HEX(CONVERT({text} USING utf8mb4)) FROM numbers"
    )
    return [
        (bytes.fromhex(data), bytes.fromhex(printed) if stored == data and printed is not None else None)
        for data, stored, printed in rows
    ]


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


async def test_every_byte_of_a_single_byte_set_is_decoded_to_the_servers_character(queries, charsets):
    for name in charsets:
        table = single_byte_table(name)
        if table is not None:
            codes = ", ".join(f"HEX(CONVERT(_{name} x'{byte:02x}' USING utf8mb4))" for byte in range(256))
            [texts] = await queries.query(f"SELECT {codes}")
            assert [text.hex().upper() for text in table] == list(texts), name


async def test_codes_of_a_multi_byte_set_are_decoded_to_the_servers_characters(queries, charsets):
    for name in charsets:
        if name in UTF8 or single_byte_table(name) is not None:
            continue
        decode = multi_byte(name)
        assert decode, f"{name} can't be decoded"
        refused = accepted = 0
        for codes in CODES.get(name, [HIGH_BYTES, PAIRS]):
            for code, printed in await converted(queries, name, codes):
                try:
                    text = decode(code).encode()
                except UnicodeError:
                    assert printed is None or not is_utf8(printed), (name, code)
                    refused += 1
                else:
                    # MariaDB refuses 8E A0, which MySQL stores
                    assert text == printed or (printed is None and code == b"\x8e\xa0!"), (name, code)
                    accepted += 1
        assert refused
        assert accepted > 5000, name


async def test_the_sets_for_all_of_unicode_are_decoded_to_the_servers_characters(queries, charsets):
    for name in {"utf16", "utf16le", "utf32", "gb18030"}.intersection(charsets):
        decode = multi_byte(name)
        for codes in (BASIC_PLANE, WIDE_UNITS):
            in_set, in_utf8 = (f"HEX(CONVERT(CONVERT({codes.sql} USING utf32) USING {to}))" for to in (name, "utf8mb4"))
            rows = await queries.query(f"{numbers(codes.count)} SELECT {in_set}, {in_utf8} FROM numbers")
            texts = [(bytes.fromhex(data), bytes.fromhex(printed)) for data, printed in rows if data and printed]
            texts = [(data, printed) for data, printed in texts if is_utf8(printed)]
            assert len(texts) > 0.9 * codes.count
            assert [decode(data).encode() for data, _ in texts] == [printed for _, printed in texts], name


async def test_text_in_each_set_is_decoded_as_it_was_inserted(queries, charsets, schema, execute):
    columns = ", ".join(f"{name} VARCHAR(40) CHARACTER SET {name}" for name in charsets)
    await execute(f"CREATE TABLE t ({columns})")
    texts = [SAMPLES[name] for name in charsets]
    await execute(f"INSERT INTO t VALUES ({', '.join(repr(text) for text in texts)})")
    for name, text in zip(charsets, texts, strict=True):
        [(stored, printed)] = await queries.query(
            f"SELECT HEX({name}), HEX(CONVERT({name} USING utf8mb4)) FROM {schema}.t"
        )
        assert bytes.fromhex(printed).decode() == text, name
        assert to_text(bytes.fromhex(stored), name) == text, name


def test_lone_surrogates_and_stray_bytes_are_refused():
    for charset, data in chain(
        [("ucs2", b"\xd8\x00"), ("ucs2", b"\xd8\x3d\xde\x00"), ("utf16", b"\xd8\x00"), ("utf32", b"\0\0\xd8\0")],
        [("cp932", b"\x80"), ("cp932", b"\x82\xa0\xa0"), ("gbk", b"a\x81"), ("ujis", b"\x8f\xa1"), ("big5", b"\xa1")],
    ):
        with pytest.raises(UnicodeError):
            to_text(data, charset)


async def test_the_servers_collations_are_among_the_default_collations(queries):
    assert (await queries.collations()).items() <= DEFAULT_COLLATIONS.items()

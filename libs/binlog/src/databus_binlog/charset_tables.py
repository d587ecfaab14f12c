"""Where the servers' character sets differ from Python's codecs.

The differences were found by comparing the codecs, code by code, with MariaDB 10.11 and MySQL 9.7, which agree with
each other, except where a comment says otherwise. A code that is not listed has the codec's character, or a question
mark if the codec has none. A listed code without a character has what the servers print for it: question marks or
U+FFFD.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


def _bytes_from(first: int, characters: str) -> dict[int, str]:
    return dict(enumerate(characters, first))


def _codes(codes: str, characters: Iterable[str]) -> dict[bytes, str]:
    return dict(zip(map(bytes.fromhex, codes.split()), characters, strict=True))


def _cells(lead: bytes, row: int, first: int, characters: str) -> dict[bytes, str]:
    """Return the codes of an EUC row from cell `first` on, with their characters; "?" for an unassigned cell."""
    return {lead + bytes([row, trail]): character for trail, character in enumerate(characters, first)}


#: charset → Python's codec, and the characters of the bytes that the codec converts differently or lacks
SINGLE_BYTE: dict[str, tuple[str, dict[int, str]]] = {
    "armscii8": (
        "latin1",
        _bytes_from(
            0xA1,
            "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'",
        ),
    ),
    "ascii": ("ascii", {}),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), "?")),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "\u207f", 0xFD: "\u00b2"}),
    "dec8": (
        "latin1",
        {
            **dict.fromkeys((0xA4, 0xA6, *range(0xAC, 0xB0), 0xB4, 0xB8, 0xBE, 0xD0, 0xDE, 0xF0, 0xFE, 0xFF), "?"),
            **{0xA8: "¤", 0xD7: "Œ", 0xDD: "Ÿ", 0xF7: "œ", 0xFD: "ÿ"},
        },
    ),
    "geostd8": (
        "cp1255",
        {
            **dict.fromkeys((0x83, 0x88, 0x98, 0x99), "?"),
            **{0xA4: "¤", 0xAA: "ª", 0xBA: "º"},
            **_bytes_from(0xC0, "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ" + 23 * "?" + "№??"),
        },
    ),
    "greek": ("iso8859_7", {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: "?", 0xA5: "?", 0xAA: "?"}),
    "hebrew": ("iso8859_8", {0xAF: "\u203e"}),
    "hp8": ("hp_roman8", {}),
    "keybcs2": ("cp437", _bytes_from(0x80, "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ")),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "\u2022"}),
    # The servers' latin1 also has the five bytes that cp1252 leaves unassigned.
    "latin1": ("cp1252", {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "swe7": (
        "ascii",
        {0x40: "É", **_bytes_from(0x5B, "ÄÖÅÜ"), 0x60: "é", **_bytes_from(0x7B, "äöåü"), 0x7F: "?"},
    ),
    "tis620": ("tis_620", dict.fromkeys((0xA0, *range(0xDB, 0xDF), *range(0xFC, 0x100)), "\ufffd")),
}


@dataclass(frozen=True, kw_only=True)
class MultiByte:
    """A multi-byte character set."""

    #: Python's codec for most of its codes
    codec: str
    #: regular expression of one code that the server stores, assigned or not
    code: bytes
    #: codes that the server converts differently from the codec
    differing: dict[bytes, str] = field(default_factory=dict)
    #: characters that the codec has and the server does not, written as in a regular expression's set
    foreign: str = ""


_SJIS = rb"[\x00-\x7f\xa1-\xdf]|[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
_EUC_JP = rb"[\x00-\x7f]|\x8e[\xa0-\xdf]|\x8f?[\xa1-\xfe]{2}"

#: codes of both Japanese EUC sets that the servers and the codec convert differently
_EUC_JP_DIFFERING = {
    # MySQL stores this code, which has no character, and prints it as "??"; MariaDB refuses it
    b"\x8e\xa0": "??",
    # the user-defined rows
    **{
        lead + bytes([row, trail]): chr(first + (row - 0xF5) * 94 + trail - 0xA1)
        for lead, first in ((b"", 0xE000), (b"\x8f", 0xE3AC))
        for row in range(0xF5, 0xFF)
        for trail in range(0xA1, 0xFF)
    },
}

MULTI_BYTE: dict[str, MultiByte] = {
    "big5": MultiByte(
        codec="big5",
        code=rb"[\x00-\x7f]|[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
        differing=_codes("a15a a1c3 a1c5 a1fe a240 a2cc a2ce", 7 * "\ufffd")
        | _codes("f9d6 f9d7 f9d8 f9d9 f9da f9db f9dc", "碁銹裏墻恒粧嫺"),
    ),
    "cp932": MultiByte(codec="cp932", code=_SJIS, foreign="\x80\uf8f0-\uf8f3"),
    "eucjpms": MultiByte(
        codec="euc_jp",
        code=_EUC_JP,
        differing=_EUC_JP_DIFFERING
        | _codes("a1c1 a1c2 a1dd a1f1 a1f2 a2cc 8fa2b7 8fa2c3", "～∥－￠￡￢～￤")
        | _cells(
            b"",
            0xAD,
            0xA1,
            "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ?㍉㌔㌢㍍㌘㌧㌃㌶㍑㍗㌍㌦㌣㌫㍊"
            "㌻㎜㎝㎞㎎㎏㏄㎡????????㍻〝〟№㏍℡㊤㊥㊦㊧㊨㈱㈲㈹㍾㍽㍼≒≡∫∮∑√⊥∠∟⊿∵∩∪",
        )
        | _cells(b"\x8f", 0xF3, 0xF3, "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ")
        # Row F4 contains compatibility ideographs: do not edit it with a tool that normalizes Unicode.
        | _cells(
            b"\x8f",
            0xF4,
            0xA1,
            "ⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏塚增寬峵嵓﨑德悅愠敎昻晥晴朗栁﨓﨔橫櫢淸淲瀨凞猪"
            "甁皂皞益礰礼神祥福竧靖精綠緖羽荢﨟薰蘒﨡蠇諸譿賴赶﨣﨤逸郞都鄕﨧﨨閒隆﨩霻靍靑飯飼館馞髙魲鶴黑",
        ),
    ),
    "euckr": MultiByte(codec="cp949", code=rb"[\x00-\x7f]|[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]"),
    "gb18030": MultiByte(
        codec="gb18030",
        code=rb"[\x00-\x7f]|[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[0-9][\x81-\xfe][0-9])",
        differing=_codes("a8bc 8135f437", "\u1e3f\ue7c7"),
    ),
    "gb2312": MultiByte(codec="gb2312", code=rb"[\x00-\x7f]|[\xa1-\xf7][\xa1-\xfe]"),
    "gbk": MultiByte(codec="gbk", code=rb"[\x00-\x7f]|[\x81-\xfe][\x40-\x7e\x80-\xfe]"),
    "sjis": MultiByte(codec="shift_jis", code=_SJIS, differing={b"\x81\x5f": "\\"}),
    # Both servers store surrogates in ucs2 columns; MariaDB prints them as invalid UTF-8, MySQL prints nothing. We
    # refuse surrogates: `code` does not match them.
    "ucs2": MultiByte(codec="utf_16_be", code=rb"[^\xd8-\xdf].", foreign="\U00010000-\U0010ffff"),
    "ujis": MultiByte(codec="euc_jp", code=_EUC_JP, differing={**_EUC_JP_DIFFERING, b"\xa1\xc0": "\\"}),
}

"""The numbers of collations, by which binlogs identify character sets."""

from __future__ import annotations

#: charset → numbers of its collations in MySQL and in MariaDB, which alone uses those from 576; some are unassigned
COLLATIONS: dict[str, tuple[int, ...]] = {
    "armscii8": (32, 64, 1056, 1088),
    "ascii": (11, 65, 1035, 1089),
    "big5": (1, 84, 1025, 1108),
    "binary": (63,),
    "cp1250": (26, 34, 44, 66, 99, 1050, 1090),
    "cp1251": (14, 23, *range(50, 53), 1074, 1075),
    "cp1256": (57, 67, 1081, 1091),
    "cp1257": (29, 58, 59, 1082, 1083),
    "cp850": (4, 80, 1028, 1104),
    "cp852": (40, 81, 1064, 1105),
    "cp866": (36, 68, 1060, 1092),
    "cp932": (95, 96, 1119, 1120),
    "dec8": (3, 69, 1027, 1093),
    "eucjpms": (97, 98, 1121, 1122),
    "euckr": (19, 85, 1043, 1109),
    "gb18030": (248, 249, 250),
    "gb2312": (24, 86, 1048, 1110),
    "gbk": (28, 87, 1052, 1111),
    "geostd8": (92, 93, 1116, 1117),
    "greek": (25, 70, 1049, 1094),
    "hebrew": (16, 71, 1040, 1095),
    "hp8": (6, 72, 1030, 1096),
    "keybcs2": (37, 73, 1061, 1097),
    "koi8r": (7, 74, 1031, 1098),
    "koi8u": (22, 75, 1046, 1099),
    "latin1": (5, 8, 15, 31, *range(47, 50), 94, 1032, 1071),
    "latin2": (2, 9, 21, 27, 77, 1033, 1101),
    "latin5": (30, 78, 1054, 1102),
    "latin7": (20, 41, 42, 79, 1065, 1103),
    "macce": (38, 43, 1062, 1067),
    "macroman": (39, 53, 1063, 1077),
    "sjis": (13, 88, 1037, 1112),
    "swe7": (10, 82, 1034, 1106),
    "tis620": (18, 89, 1042, 1113),
    "ucs2": (35, 90, *range(128, 152), 159, *range(640, 644), 1059, 1114, 1152, 1174, *range(2560, 2816)),
    "ujis": (12, 91, 1036, 1115),
    "utf16": (54, 55, *range(101, 125), *range(672, 676), 1078, 1079, 1125, 1147, *range(2816, 3072)),
    "utf16le": (56, 62, 1080, 1086),
    "utf32": (60, 61, *range(160, 184), *range(736, 740), 1084, 1085, 1184, 1206, *range(3072, 3328)),
    "utf8mb3": (33, 76, 83, *range(192, 216), 223, *range(576, 580), 1057, 1107, 1216, 1238, *range(2048, 2304)),
    "utf8mb4": (
        45,
        46,
        *range(224, 248),
        *range(255, 324),
        *range(608, 612),
        1069,
        1070,
        1248,
        1270,
        *range(2304, 2560),
    ),
}

#: number of a collation → its charset. The numbers mean the same on all servers; Session.collations() returns those of
#: one server, which may be newer than this list.
DEFAULT_COLLATIONS: dict[int, str] = {number: charset for charset, numbers in COLLATIONS.items() for number in numbers}

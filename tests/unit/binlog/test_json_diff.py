"""MySQL's JSON diffs turn a document into the text that a SELECT prints (checked with MySQL 9.7)."""

import json
import random

import pytest

from databus_binlog.json_diff import apply_diffs

REPLACE, INSERT, REMOVE = range(3)


def string(text: str) -> bytes:
    """Return a text with its length, a lenenc integer, before it."""
    raw = text.encode()
    return (bytes([len(raw)]) if len(raw) < 251 else b"\xfc" + len(raw).to_bytes(2, "little")) + raw


def diff(operation: int, path: str, value: str = "") -> bytes:
    """Return one diff. Its value is text instead of binary JSON."""
    return bytes([operation]) + string(path) + (b"" if operation == REMOVE else string(value))


def applied(before: str, *diffs: bytes) -> str:
    """Apply diffs. Their values are text already, so `bytes` replaces the conversion of binary JSON."""
    return apply_diffs(before.encode(), b"".join(diffs), bytes).decode()


SHOP = '{"a": [1, 2, 3, {"z": []}], "e": [], "o": {"k": [0]}, "s": 5}'


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (diff(REPLACE, "$.s", "6"), '{"a": [1, 2, 3, {"z": []}], "e": [], "o": {"k": [0]}, "s": 6}'),
        (diff(REPLACE, "$.a[last]", "9"), '{"a": [1, 2, 3, 9], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(REPLACE, "$.a[last-1]", "9"), '{"a": [1, 2, 9, {"z": []}], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(REPLACE, "$.o.k[0]", "[]"), '{"a": [1, 2, 3, {"z": []}], "e": [], "o": {"k": [[]]}, "s": 5}'),
        (diff(REPLACE, "$", "null"), "null"),
        (diff(INSERT, "$.a[1]", "9"), '{"a": [1, 9, 2, 3, {"z": []}], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(INSERT, "$.a[99]", "9"), '{"a": [1, 2, 3, {"z": []}, 9], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(INSERT, "$.a[last-99]", "9"), '{"a": [9, 1, 2, 3, {"z": []}], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(INSERT, "$.e[last-3]", "9"), '{"a": [1, 2, 3, {"z": []}], "e": [9], "o": {"k": [0]}, "s": 5}'),
        (diff(INSERT, "$.a[last].z[5]", "6"), '{"a": [1, 2, 3, {"z": [6]}], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(INSERT, "$.b", "1.50"), '{"a": [1, 2, 3, {"z": []}], "b": 1.50, "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(REMOVE, "$.a[last-2]"), '{"a": [1, 3, {"z": []}], "e": [], "o": {"k": [0]}, "s": 5}'),
        (diff(REMOVE, "$.a[0]") * 2 + diff(REMOVE, "$.o.k"), '{"a": [3, {"z": []}], "e": [], "o": {}, "s": 5}'),
        (b"", SHOP),
    ],
)
def test_a_diff_changes_only_the_value_at_its_path(change, after):
    assert applied(SHOP, change) == after


def test_a_diff_may_change_a_value_that_an_earlier_diff_set():
    changes = diff(REPLACE, "$.s", '{"x": [1]}'), diff(INSERT, "$.s.x[0]", "{}"), diff(INSERT, "$.s.x[0].y", "true")
    assert applied('{"s": 5}', *changes) == '{"s": {"x": [{"y": true}, 1]}}'


def test_values_without_a_diff_keep_their_text():
    kept = r'"é": 1.50, "rest": "\u0001\"\\/\t😀", "日本": [1.0, 1e20, -0.0, 18446744073709551615]'
    assert applied(f'{{"a": 1, {kept}}}', diff(REPLACE, "$.a", "2")) == f'{{"a": 2, {kept}}}'


@pytest.mark.parametrize(
    ("leg", "printed"),
    [
        (".$x", '"$x"'),
        (".é", '"é"'),
        (".last", '"last"'),
        ('.""', '""'),
        ('."a b"', '"a b"'),
        ('."a.b"', '"a.b"'),
        (r'."a\"]b"', r'"a\"]b"'),
        (r'."a\\b"', r'"a\\b"'),
        (r'."\u0001\t"', r'"\u0001\t"'),
        ('."😀[0]"', '"😀[0]"'),
    ],
)
def test_member_names_in_a_path_are_read_and_printed_as_by_the_server(leg, printed):
    before = f"{{{printed}: [0]}}"
    assert applied(before, diff(REPLACE, f"${leg}[0]", "1")) == f"{{{printed}: [1]}}"
    assert applied("{}", diff(INSERT, f"${leg}", "[0]")) == before


def test_members_are_sorted_by_length_and_bytes_of_their_names():
    names = ["b", "a", "é", "zz", "aaa", "日", "~", "B"]
    inserted = applied("{}", *(diff(INSERT, f'$."{name}"', "0") for name in names))
    assert list(json.loads(inserted)) == ["B", "a", "b", "~", "zz", "é", "aaa", "日"]


def test_the_innermost_value_of_a_document_of_100_levels_can_be_changed():
    before = '{"a": [' * 50 + "1" + "]}" * 50
    assert applied(before, diff(REPLACE, "$" + ".a[0]" * 50, "2")) == before.replace("1", "2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (diff(REPLACE, "$.secret", "1"), "not fit its document: REPLACE of a member"),
        (diff(REPLACE, "$.a[4]", "1"), "not fit its document: REPLACE of a cell"),
        (diff(REPLACE, "$.s[0]", "1"), "not fit its document: REPLACE of a cell"),
        (diff(REPLACE, "$.a.secret", "1"), "not fit its document: REPLACE of a member"),
        (diff(INSERT, "$.s", "1"), "not fit its document: INSERT of a member"),
        (diff(INSERT, "$[0]", "1"), "not fit its document: INSERT of a cell"),
        (diff(INSERT, "$.secret.a", "1"), "not fit its document: INSERT of a member"),
        (diff(INSERT, "$", "1"), "not fit its document: INSERT of the root"),
        (diff(REMOVE, "$"), "not fit its document: REMOVE of the root"),
        (diff(REMOVE, "$.a[last-4]"), "not fit its document: REMOVE of a cell"),
        (diff(REMOVE, "$.a[4].secret"), "not fit its document: REMOVE of a member"),
        (diff(7, "$.secret", "1"), "can't be read: unknown operation of an unreadable path"),
        *(
            (diff(REMOVE, path), "can't be read: REMOVE of an unreadable path")
            for path in ("", "a", "$.", "$a", "$[-1]")
        ),
        *((diff(REMOVE, path), "can't be read: REMOVE of") for path in ("$[]", "$.*", "$[0 to 1]", "$**.a", '$."a')),
        (diff(REPLACE, "$.secret", "1")[:-1], "can't be read: REPLACE of a member"),
        (diff(REPLACE, "$.secret", "1")[:5], "can't be read: REPLACE of an unreadable path"),
        (b"\0\xfb", "can't be read: REPLACE of an unreadable path"),
    ],
)
def test_a_diff_that_is_malformed_or_does_not_fit_is_refused_with_a_message_without_data(change, message):
    with pytest.raises(ValueError, match=message) as refused:
        applied(SHOP, change)
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__


NAMES = ("a", "b", "aa", "é", "日", 'q"', "x.y", "\\", "\t", "\x7f", "")
SCALARS = (None, True, 0, -7, 2**64 - 1, 1.5, "", 'é"\\\n\x01\x7f', "x" * 300)


def text(value) -> str:
    """Return the JSON text that the server prints for a Python value."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: (len(member[0].encode()), member[0].encode()))
        return "{" + ", ".join(f"{text(name)}: {text(child)}" for name, child in members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def random_value(rng: random.Random, depth: int = 0):
    if rng.random() < depth / 4:
        return rng.choice(SCALARS)
    children = [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return children if rng.random() < 0.5 else dict(zip(rng.sample(NAMES, len(children)), children, strict=True))


def random_change(rng: random.Random, parent, path: str = "$") -> bytes:
    """Change one value below `parent`, which has this path; return the diff."""
    if isinstance(parent, dict):
        key = rng.choice(NAMES)
        exists, leg = key in parent, f".{text(key)}"
    else:
        key = rng.randrange(len(parent) + 2)
        exists, leg = key < len(parent), f"[{key}]"
        if exists and rng.random() < 0.5:
            leg = f"[last-{len(parent) - 1 - key}]"
    if exists and isinstance(parent[key], dict | list) and rng.random() < 0.7:
        return random_change(rng, parent[key], path + leg)
    value = random_value(rng, depth=2)
    if not exists or (isinstance(parent, list) and rng.random() < 0.5):
        change = diff(INSERT, path + leg, text(value))
    else:
        change = rng.choice([diff(REPLACE, path + leg, text(value)), diff(REMOVE, path + leg)])
    if change[0] == REMOVE:
        del parent[key]
    elif change[0] == INSERT and isinstance(parent, list):
        parent.insert(key, value)
    else:
        parent[key] = value
    return change


@pytest.mark.parametrize("seed", range(100))
def test_random_diffs_have_the_effect_of_the_same_changes_of_python_objects(seed):
    rng = random.Random(seed)
    document = random_value(rng)
    before = text(document)
    changes = [random_change(rng, document) for _ in range(1 + seed % 30)]
    assert applied(before, *changes) == text(document)

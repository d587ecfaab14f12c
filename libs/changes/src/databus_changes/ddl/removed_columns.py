"""Recognizes ALTER TABLE statements after which a column may have other values under the same name."""

from collections.abc import Sequence

from databus_changes.ddl.token import Token

_VERBS = {"DROP", "CHANGE", "RENAME"}
_BEFORE_NAME = {"COLUMN", "IF", "EXISTS"}


def removed_columns(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the names, in lower case, of the columns that an ALTER TABLE drops or renames.

    A column may be added again under such a name. The result may have other words, such as INDEX after DROP.
    """
    found: set[str] = set()
    for index, token in enumerate(tokens):
        if token.keyword not in _VERBS:
            continue
        names = [each.text.lower() for each in tokens[index + 1 : index + 6] if each.keyword not in _BEFORE_NAME][:2]
        if names and not (token.keyword == "CHANGE" and names[0] == names[-1]):
            found.add(names[0])
    return frozenset(found)

"""The statements of each file in tests/cases lead to the file's messages, on each kind of server that it is for."""

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest

from cases.case import FOLDER, read_case, written
from cases.replay import replay
from devstack import Kind, Server

KINDS: tuple[Kind, ...] = ("mariadb", "mysql")
CASES = [
    pytest.param(kind, path, id=f"{kind}-{path.stem}")
    for kind in KINDS
    for path in sorted(FOLDER.glob("*.sql"))
    if kind in read_case(path, kind).servers
]


@pytest.mark.parametrize(("kind", "path"), CASES)
async def test_the_statements_of_a_case_lead_to_its_messages(
    kind: Kind, path: Path, start_own: Callable[[Kind], Server]
):
    case = read_case(path, kind)
    expected, actual = written(case.steps), written(await replay(case, start_own(kind)))
    if expected != actual:
        diff = unified_diff(
            expected.splitlines(), actual.splitlines(), f"{path.name}: expected", "published", lineterm=""
        )
        pytest.fail("\n".join(diff), pytrace=False)


def test_a_message_without_a_statement_above_it_is_an_error(tmp_path: Path):
    path = tmp_path / "wrong.sql"
    path.write_text("-- route: {format: databus}\n-- -> {}\nSELECT 1;\n")
    with pytest.raises(ValueError, match=r"wrong\.sql:2: a message must follow"):
        read_case(path, "mysql")

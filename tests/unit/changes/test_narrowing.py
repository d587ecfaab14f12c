"""Doubts about DML are not narrowed if a privilege to see triggers may have been revoked in part."""

import pytest

from databus_changes.doubts import Doubt, statement_format
from databus_changes.narrowing import narrowed
from unit.changes.statement_samples import SOURCE, logged

GRANT = "GRANT SELECT, TRIGGER ON *.* TO `u`@`%`"
REVOKE = "REVOKE TRIGGER ON `shop`.* FROM `u`@`%`"  # of MySQL with partial_revokes


class Database:
    """Has the table shop.t without triggers, for an account with these grants."""

    def __init__(self, *grants: str) -> None:
        self._grants = grants

    async def query(self, sql: str, args: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        if sql == "SHOW GRANTS":
            return [(grant,) for grant in self._grants]
        answers = {"CURRENT_USER": "u@%", "engine": "InnoDB", "COUNT(*)": 0, "TRIGGER": 1}
        return [(answer,) for word, answer in answers.items() if word in sql][:1]


@pytest.mark.parametrize(("grants", "tables"), [([GRANT], {("shop", "t")}), ([GRANT, REVOKE], set())])
async def test_a_partial_revoke_hides_triggers(grants: list[str], tables: set[tuple[str, str]]) -> None:
    doubt: Doubt = statement_format(logged("delete from t"), ["shop"], [("shop", "t")])
    assert (await narrowed(doubt, Database(*grants), SOURCE)).tables == tables


async def test_a_doubt_without_certain_targets_asks_nothing() -> None:
    doubt = statement_format(logged("call p()"), ["shop"])
    assert await narrowed(doubt, None, SOURCE) == doubt

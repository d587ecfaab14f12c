"""All checks are made whatever they find, and become one error of a service."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from databus_core.checks import Check, Result, Verdict, Warned, require, results
from databus_core.errors import InvalidSettings, KafkaUnavailable, RedisUnavailable


@asynccontextmanager
async def connected(at_end: Exception | None = None) -> AsyncIterator[str]:
    yield "connection"
    if at_end:
        raise at_end


def check(what: str, error: Exception | None = None) -> Check[str]:
    async def make(connection: str) -> str:
        if error:
            raise error
        return f"by {connection}"

    return Check(what, make)


async def test_a_check_that_fails_hides_no_other() -> None:
    checks = [check("a"), check("b", InvalidSettings("b is wrong\nand more")), check("c", Warned("c is odd"))]
    found = await results("Redis", connected(), checks)
    assert [(each.what, each.verdict, each.lines) for each in found] == [
        ("a", Verdict.OK, ["by connection"]),
        ("b", Verdict.WRONG, ["b is wrong", "and more"]),
        ("c", Verdict.WARNING, ["c is odd"]),
    ]


async def test_what_was_found_is_kept_if_the_connection_fails_at_its_end() -> None:
    found = await results("Redis", connected(RedisUnavailable("gone")), [check("a")])
    assert [(each.what, each.verdict) for each in found] == [("a", Verdict.OK), ("connection", Verdict.WRONG)]


def failed(error: Exception) -> Result:
    return Result("x", "y", error=error)


def test_all_faults_become_one_error_with_the_code_of_the_gravest(caplog: pytest.LogCaptureFixture) -> None:
    require([Result("x", "y", "good"), failed(Warned("odd"))])
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(logging.WARNING, "odd")]
    only = KafkaUnavailable("k")
    with pytest.raises(KafkaUnavailable) as raised:
        require([failed(only)])
    assert raised.value is only
    with pytest.raises(Exception, match=r"^k\ns$") as together:
        require([failed(only), failed(InvalidSettings("s\nk"))])
    assert together.value.exit_code == InvalidSettings.exit_code  # type: ignore[attr-defined]

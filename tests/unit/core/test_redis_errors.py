"""Error answers of Redis: which are retried, and which are reported to the operator."""

import pytest
from redis._parsers.base import BaseParser
from redis.exceptions import RedisError

from databus_core.errors import FatalError, InvalidSettings, RedisUnavailable
from databus_core.redis_connection import redis_error


def answered(text: str) -> RedisError:
    """Parse an error answer as redis-py does."""
    error: RedisError = BaseParser.parse_error(text)
    return error


@pytest.mark.parametrize(
    "text",
    [
        "LOADING Redis is loading the dataset in memory",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "CLUSTERDOWN The cluster is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "READONLY You can't write against a read only replica.",
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
        "NOREPLICAS Not enough good replicas to write.",
        "BUSY Redis is busy running a script.",
    ],
)
def test_an_error_that_may_pass_by_itself_is_retried(text):
    assert isinstance(redis_error(answered(text)), RedisUnavailable)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("NOAUTH Authentication required.", "set redis.password_file"),
        ("WRONGPASS invalid username-password pair or user is disabled.", "check redis.username"),
        ("NOPERM User shop has no permissions to run the 'fcall' command", "grant the account this right"),
    ],
)
def test_the_error_of_a_refused_account_says_what_to_change(text, advice):
    error = redis_error(answered(text))
    assert isinstance(error, InvalidSettings)
    assert advice in str(error)


def test_an_unknown_refusal_is_fatal():
    assert type(redis_error(answered("ERR unknown command 'FUNCTION'"))) is FatalError

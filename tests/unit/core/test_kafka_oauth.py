"""Tokens for OAUTHBEARER, from a token endpoint that is a real server."""

import socket
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from pydantic import SecretStr

from common.token_endpoint import TokenEndpoint, serving
from databus_core.errors import DatabusError, InvalidSettings, KafkaUnavailable
from databus_core.kafka_oauth import Tokens
from databus_core.settings.kafka import KafkaOAuth


@pytest.fixture
async def endpoint() -> AsyncIterator[TokenEndpoint]:
    async with serving(TokenEndpoint(lambda: "token", secret="s3cret")) as endpoint:
        yield endpoint


def provider(endpoint: TokenEndpoint, **overrides: Any) -> Tokens:
    values = {"token_url": endpoint.url, "client_id": "databus", "client_secret": "s3cret", "scope": "kafka"}
    return Tokens(KafkaOAuth(**(values | overrides)))


async def failure(tokens: Tokens) -> DatabusError:
    """Request a token in vain, and return our error, which is the cause of the error that aiokafka gets."""
    with pytest.raises(KafkaConnectionError) as caught:
        await tokens.token()
    assert isinstance(caught.value.__cause__, DatabusError)
    assert "s3cret" not in str(caught.value)
    return caught.value.__cause__


async def test_a_token_is_fetched_with_the_clients_credentials_and_kept(endpoint: TokenEndpoint) -> None:
    tokens = provider(endpoint)
    assert [await tokens.token(), await tokens.token()] == ["token", "token"]
    assert endpoint.requests == [{"grant_type": "client_credentials", "scope": "kafka"}]


async def test_a_token_is_fetched_again_before_it_expires(
    endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.lifetime = 100
    clock = SimpleNamespace()
    monkeypatch.setattr("databus_core.kafka_oauth.time", clock)
    tokens = provider(endpoint)
    for now, fetched in ((1000, 1), (1079, 1), (1081, 2), (1160, 2), (1162, 3)):
        clock.monotonic = partial(float, now)
        await tokens.token()
        assert len(endpoint.requests) == fetched


async def test_a_refused_client_is_reported_as_a_wrong_setting(endpoint: TokenEndpoint) -> None:
    error = await failure(provider(endpoint, client_secret=SecretStr("wrong")))
    assert isinstance(error, InvalidSettings)
    assert str(error) == (
        f"the token endpoint {endpoint.url} refuses client 'databus': unknown client (check kafka.sasl.oauth)"
    )


@pytest.mark.parametrize(
    ("status", "answer"), [(200, {"hello": "world"}), (200, b'{"access_token":"\xff"}'), (400, b'{"error":"\xff"}')]
)
async def test_an_answer_without_a_token_is_reported_as_a_wrong_setting(
    endpoint: TokenEndpoint, status: int, answer: dict[str, Any] | bytes
) -> None:
    endpoint.status, endpoint.answer = status, answer
    error = await failure(provider(endpoint))
    assert isinstance(error, InvalidSettings)
    assert "(check kafka.sasl.oauth" in str(error)


async def test_an_unavailable_endpoint_is_an_error_that_is_retried(endpoint: TokenEndpoint) -> None:
    endpoint.status = 503
    assert isinstance(await failure(provider(endpoint)), KafkaUnavailable)
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        port = closed.getsockname()[1]
    error = await failure(provider(endpoint, token_url=f"http://127.0.0.1:{port}/token"))
    assert isinstance(error, KafkaUnavailable)
    assert "kafka.sasl.oauth.token_url" in str(error)

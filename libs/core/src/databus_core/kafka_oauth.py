"""Tokens for SASL's mechanism OAUTHBEARER."""

import ssl
import time
from functools import cache

import httpx
import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from databus_core.errors import DatabusError, InvalidSettings, KafkaUnavailable
from databus_core.settings.kafka import KafkaOAuth

_TIMEOUT_SECONDS = 10
#: fraction of a token's lifetime after which a new token is fetched; the same as in Java's clients
_REFRESH = 0.8


class _Token(msgspec.Struct):
    access_token: str
    #: lifetime in seconds; with 0, each login fetches a new token
    expires_in: float = 0


class _Problem(msgspec.Struct):
    """An error response (RFC 6749, 5.2)."""

    error: str = ""
    error_description: str = ""


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Fetches tokens from a token endpoint, and keeps each until it is due for refresh."""

    def __init__(self, oauth: KafkaOAuth) -> None:
        self._oauth = oauth
        self._token = ""
        self._refresh_at = 0.0

    async def token(self) -> str:
        """Return a token that is valid now.

        Raises KafkaConnectionError, which aiokafka retries, with an error of ours as its cause.
        """
        if time.monotonic() >= self._refresh_at:
            begun = time.monotonic()
            try:
                found = await self._fetch()
            except DatabusError as error:
                raise KafkaConnectionError(str(error)) from error
            self._token, self._refresh_at = found.access_token, begun + found.expires_in * _REFRESH
        return self._token

    async def _fetch(self) -> _Token:
        """Fetch a token. Raises KafkaUnavailable, and InvalidSettings where a retry cannot help."""
        oauth = self._oauth
        form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
        client = (oauth.client_id, oauth.client_secret.get_secret_value())
        server = f"the token endpoint {oauth.token_url}"
        try:
            async with httpx.AsyncClient(verify=ssl.create_default_context(), timeout=_TIMEOUT_SECONDS) as http:
                answer = await http.post(oauth.token_url, data=form, auth=client)
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            text = f"{server} cannot be reached: {reason} (check kafka.sasl.oauth.token_url)"
            raise KafkaUnavailable(text) from error
        if answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise KafkaUnavailable(f"{server} answers {answer.status_code} {answer.reason_phrase}")
        if not answer.is_success:
            raise InvalidSettings(
                f"{server} refuses client {oauth.client_id!r}: {_reason(answer)} (check kafka.sasl.oauth)"
            )
        try:
            return msgspec.json.decode(answer.content, type=_Token, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidSettings(f"{server} returned no token: {error} (check kafka.sasl.oauth.token_url)") from error


def _reason(answer: httpx.Response) -> str:
    try:
        problem = msgspec.json.decode(answer.content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = _Problem()
    return problem.error_description or problem.error or f"{answer.status_code} {answer.reason_phrase}"


@cache
def tokens(oauth: KafkaOAuth) -> Tokens:
    """Return the token provider of these settings, which all clients with these settings share."""
    return Tokens(oauth)

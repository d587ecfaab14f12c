"""aiokafka's errors turned into ours, with the reason why a broker refuses a connection."""

import asyncio
import os
import ssl
from typing import Any

from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalArgumentError,
    IllegalSaslStateError,
    InvalidProducerEpoch,
    InvalidTopicError,
    InvalidTransactionTimeout,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    ProducerFenced,
    RequestTimedOutError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedCodecError,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from databus_core.client_tls import tls_alert, tls_refusal
from databus_core.errors import DatabusError, FatalError, Fenced, InvalidSettings, KafkaUnavailable
from databus_core.settings import Kafka
from databus_core.wrong_server import wrong_server

#: the account lacks a right
_DENIALS = (ClusterAuthorizationFailedError, TopicAuthorizationFailedError, TransactionalIdAuthorizationFailed)
#: the request is wrong, so trying again cannot help
_REFUSALS = (IllegalArgumentError, InvalidTopicError)
#: aiokafka could not connect, lost the connection or got no answer; it only logs the cause
_CONNECTION_ERRORS = (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError)
#: the broker closed the connection
_CLOSED = (KafkaConnectionError, ConnectionResetError, ConnectionAbortedError)
_PROBE_SECONDS = 5


async def explain(error: KafkaError, kafka: Kafka, brokers: set[str], connection: dict[str, Any]) -> DatabusError:
    """Turn an error of aiokafka into ours. After a failed connection, connect to each broker to find out why.

    `brokers` are the brokers that the client knows, as `host:port`; `connection` holds aiokafka's options for a
    connection.
    """
    # When no broker could be asked, aiokafka raises KafkaError itself, not a subclass.
    if not (isinstance(error, _CONNECTION_ERRORS) or type(error) is KafkaError):
        return translate(error)
    addresses = sorted({*kafka.bootstrap_servers, *brokers})
    answers = await asyncio.gather(*(_probe(kafka, address, connection) for address in addresses))
    refusals = [answer for answer in answers if answer]
    if not refusals:
        return translate(error)
    refused = next((each for each in refusals if isinstance(each, FatalError)), refusals[0])
    # If another broker accepts the login, the settings are right, and this broker's error may pass.
    return refused if len(refusals) == len(answers) else KafkaUnavailable(str(refused))


async def _probe(kafka: Kafka, address: str, options: dict[str, Any]) -> DatabusError | None:
    """Log in to one broker. Returns the reason if the login fails, else None."""
    name, _, number = address.rpartition(":")
    host, port = name.strip("[]"), int(number)
    try:
        async with asyncio.timeout(_PROBE_SECONDS):
            connection = await create_conn(host, port, **options)
            try:
                await _send_first(connection, with_token=options.get("sasl_mechanism") == "OAUTHBEARER")
            finally:
                await connection.close()
    except _CLOSED as error:
        alert = await tls_alert(host, port, options["ssl_context"]) if kafka.encrypted else None
        refusal = _refusal(kafka, address, alert or error)
    except (OSError, KafkaError) as error:
        refusal = _refusal(kafka, address, error)
    else:
        return None
    if isinstance(refusal, KafkaUnavailable) and (other := await wrong_server(host, port, "Kafka")):
        return InvalidSettings(f"{address} is {other}, not Kafka (check kafka.bootstrap_servers)")
    return refusal


async def _send_first(connection: AIOKafkaConnection, *, with_token: bool) -> None:
    """Send a request, because a port that speaks another protocol may accept the connection and fail only then.

    Raises SaslAuthenticationFailed if the broker refuses the token.
    """
    answer = await connection.send(MetadataRequest([]))
    if answer.brokers or not with_token:
        return
    # A broker that refuses the token lists no brokers and then closes the connection; a broker that is still starting
    # lists none either, but keeps the connection open.
    try:
        await connection.send(MetadataRequest([]))
    except KafkaConnectionError as error:
        raise SaslAuthenticationFailed("the token is not accepted") from error


def translate(error: KafkaError) -> DatabusError:
    """Turn an error of aiokafka into ours, by its type only."""
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return Fenced(
            "another process took over this one's transactional id (if this happens again and again, all publishers of "
            "the pipeline have to use the same Redis, and only one `databus deadletter replay` may run)"
        )
    if isinstance(error, InvalidTransactionTimeout):
        return InvalidSettings(
            "publisher.transaction_timeout is longer than the broker allows (lower it, or raise the broker's "
            "transaction.max.timeout.ms)"
        )
    if isinstance(error, _DENIALS):
        return FatalError(f"Kafka denies access: {error} (grant the account this right)")
    if isinstance(error, _REFUSALS):
        return FatalError(f"Kafka refuses the request: {error}")
    if isinstance(error, UnsupportedCodecError):
        return FatalError(f"the topic is compressed: {error} (install `aiokafka[lz4,zstd]`)")
    return KafkaUnavailable(f"Kafka is unavailable: {error} (check kafka.bootstrap_servers)")


def _refusal(kafka: Kafka, address: str, error: Exception) -> DatabusError:
    """Explain a failed login to a broker: InvalidSettings if trying again cannot help, else KafkaUnavailable."""
    server, cause = f"Kafka at {address}", error.__cause__
    if isinstance(cause, DatabusError):  # from the token endpoint
        return cause
    if refused := tls_refusal(server, "kafka", error) or tls_refusal(server, "kafka", cause):
        return refused
    if isinstance(error, SaslAuthenticationFailed):
        account, settings = _account(kafka)
        return InvalidSettings(f"{server} refuses the login of {account}: {_reason(error)} (check {settings})")
    if isinstance(error, UnsupportedSaslMechanismError | IllegalSaslStateError):
        mechanism = kafka.sasl.mechanism if kafka.sasl else ""
        advice = "check kafka.sasl.mechanism and kafka.security_protocol"
        return InvalidSettings(f"{server} does not offer SASL mechanism {mechanism} ({advice})")
    return KafkaUnavailable(f"{server} {_failed_connection(kafka, error)}")


def _failed_connection(kafka: Kafka, error: Exception) -> str:
    """Describe why there is no connection to a broker, and what to check."""
    if isinstance(error, (*_CLOSED, ssl.SSLError)):
        return f"closed the connection: does this port speak {kafka.security_protocol} (kafka.security_protocol)?"
    reason = "does not answer" if isinstance(error, TimeoutError) else f"cannot be reached: {_reason(error)}"
    return f"{reason} (check kafka.bootstrap_servers)"


def _account(kafka: Kafka) -> tuple[str, str]:
    """Return a description of the account, and the names of the settings to check."""
    sasl = kafka.sasl
    if sasl and sasl.oauth:
        return f"OAuth client {sasl.oauth.client_id!r}", "kafka.sasl.oauth"
    if sasl:
        return f"user {sasl.username!r} by {sasl.mechanism}", "kafka.sasl.username and kafka.sasl.password"
    return "a client without an account", "kafka.security_protocol and kafka.sasl"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        number = error.errno or 0  # negative for the resolver's own errors
        return os.strerror(number) if number > 0 else error.strerror or str(error)
    return str(error.args[0]) if error.args and error.args[0] else type(error).__name__

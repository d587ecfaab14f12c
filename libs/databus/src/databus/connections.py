"""Errors of aiokafka turned into ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalArgumentError,
    InvalidProducerEpoch,
    InvalidTopicError,
    InvalidTransactionTimeout,
    KafkaError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from databus.errors import DatabusError, FatalError, Fenced, InvalidSettings, KafkaUnavailable

#: Kafka will say the same tomorrow
_KAFKA_REFUSALS = (
    ClusterAuthorizationFailedError,
    IllegalArgumentError,
    InvalidTopicError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)


@contextmanager
def kafka_errors() -> Iterator[None]:
    """Turn aiokafka's errors into ours."""
    try:
        yield
    except KafkaError as error:
        raise _translate(error) from error


def _translate(error: KafkaError) -> DatabusError:
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        return Fenced("another publisher of this pipeline is active")
    if isinstance(error, InvalidTransactionTimeout):
        return InvalidSettings(
            "publisher.transaction_timeout: the broker allows no such time; raise its transaction.max.timeout.ms"
        )
    if isinstance(error, _KAFKA_REFUSALS):
        return FatalError(f"Kafka refuses: {error}")
    return KafkaUnavailable(f"Kafka does not serve: {error} (check kafka.bootstrap_servers)")

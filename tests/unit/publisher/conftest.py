"""A publication with stand-ins for Kafka."""

from collections.abc import Callable
from typing import Any

import pytest

from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.settings.topic_claims import known_claims
from databus_publisher.publication import Publication
from databus_publisher.tracing import TracedEnd, TracedPublication
from unit.publisher.publishing import Producer, Topics


@pytest.fixture
def publish() -> Callable[..., Any]:
    def make(
        message_format: str, oversize: str = "stop", pipe: TracedEnd | None = None, **options: object
    ) -> tuple[Publication, Producer]:
        routes = [{"match": ["*.*"], "format": message_format, "topic": "t", "options": options}]
        settings = Settings.model_validate({"name": "shop", "publisher": {"routes": routes, "oversize": oversize}})
        producer: Any = Producer()
        topics: Any = Topics()
        arguments = settings, producer, topics, Progress(), known_claims(settings, []), ()
        return TracedPublication(pipe, *arguments) if pipe else Publication(*arguments), producer

    return make

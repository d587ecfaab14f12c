"""Which settings the sink can read topics with."""

from typing import Any

import pytest

from databus.errors import InvalidSettings
from databus.settings import Settings
from databus_spark_sink.stream.offsets import topic_pattern


def settings(**publisher: Any) -> Settings:
    return Settings(name="shop", spark={"lake": "file:///lake", "tables": ["shop.*"]}, publisher=publisher)


@pytest.mark.parametrize(
    ("publisher", "message"),
    [
        ({"delivery": "at_least_once"}, "publisher.delivery: the sink needs exactly_once"),
        ({"format": "maxwell-json"}, "the sink reads format databus, and no rule"),
    ],
)
def test_topics_whose_records_are_no_exact_changes_are_refused(publisher: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        topic_pattern(settings(**publisher))

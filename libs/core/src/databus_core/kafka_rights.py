"""Ask Kafka what the account may do with a topic, before a record of a transaction fails because of it.

Kafka answers that from version 8 of a metadata request on (Kafka 2.3); aiokafka has versions up to 5.
"""

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

#: the bit of the operation WRITE
_WRITE = 1 << 4
#: what a server answers that does not know the operations
_NOT_KNOWN = -(2**31)


class _Metadata(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", String()), ("port", Int32), ("rack", String()))),
        ("cluster_id", String()),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String()),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("operations", Int32),
            ),
        ),
        ("cluster_operations", Int32),
    )


class _MetadataStruct(RequestStruct):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _Metadata
    SCHEMA = Schema(
        ("topics", Array(String())),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_operations", Boolean),
        ("include_topic_operations", Boolean),
    )


class _MetadataRequest(Request[_MetadataStruct]):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_MetadataStruct]) -> _MetadataStruct:
        return request_struct_class([self._topic], False, False, True)


async def may_write(admin: AIOKafkaAdminClient, topic: str) -> bool:
    """Return whether the account may write to a topic; True if that is not known."""
    try:
        answer = await admin._send_request(_MetadataRequest(topic))
    except NotImplementedError:  # an older server
        return True
    [found] = answer.to_object()["topics"]
    if found["error_code"] == TopicAuthorizationFailedError.errno:  # it may not even describe the topic
        return False
    return found["operations"] == _NOT_KNOWN or bool(found["operations"] & _WRITE)

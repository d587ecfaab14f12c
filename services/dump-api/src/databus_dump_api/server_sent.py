"""Server-sent events: how they are encoded and answered."""

from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse

MEDIA_TYPE = "text/event-stream"


def encode(name: str, data: msgspec.Struct) -> bytes:
    """Encode an event whose data is JSON."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))


def respond(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Answer with a stream of encoded events."""
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})

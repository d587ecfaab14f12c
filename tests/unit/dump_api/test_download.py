"""Which bytes of a file a request asks for (RFC 9110, section 14)."""

import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from databus_dump_api.download import requested_range

ETAG = '"abc"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=5-", (5, 10)),
        ("bytes=5-7", (5, 8)),
        ("bytes=5-99", (5, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=7-5", None),  # not a range
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("rows=0-1", None),
        ("", None),
    ],
)
def test_a_range(text: str, expected: tuple[int, int] | None) -> None:
    assert requested_range(Headers({"Range": text}), 10, ETAG) == expected


def test_a_range_of_another_version_is_ignored() -> None:
    assert requested_range(Headers({"Range": "bytes=5-", "If-Range": '"old"'}), 10, ETAG) is None
    assert requested_range(Headers({"Range": "bytes=5-", "If-Range": ETAG}), 10, ETAG) == (5, 10)


@pytest.mark.parametrize("text", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_behind_the_end_is_refused(text: str) -> None:
    with pytest.raises(HTTPException) as refused:
        requested_range(Headers({"Range": text}), 10, ETAG)
    assert (refused.value.status_code, refused.value.headers) == (416, {"Content-Range": "bytes */10"})

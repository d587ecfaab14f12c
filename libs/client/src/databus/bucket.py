"""Reads values in S3. Needs the extra `s3`."""

from functools import lru_cache

from databus_core.errors import ChangesLost
from databus_core.object_store import ObjectStore


def read(url: str) -> bytes:
    """Read the object `s3://bucket/name`. Raises ChangesLost if it is not there, and ObjectStoreUnavailable."""
    bucket, _, name = url.removeprefix("s3://").partition("/")
    found = _store(f"s3://{bucket}").get(name)
    if found is None:
        raise ChangesLost(f"a value was stored in {url}, which is not there any more")
    return found[0]


_store = lru_cache(ObjectStore)  # it keeps connections and credentials

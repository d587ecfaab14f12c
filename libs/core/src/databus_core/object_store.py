"""Objects in a bucket with the API of S3, below one prefix.

Address, region and credentials come from the environment variables that other programs for S3 read (AWS_ENDPOINT_URL,
AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, …), or from the machine's role. Needs the extra `s3`.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from os import environ
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore import exceptions
from obstore.store import S3Store

from databus_core.errors import ObjectStoreUnavailable

#: bytes of an object that are passed on at a time
_CHUNK = 2**17
_RETRIES = 3
_LONGEST_RETRY = timedelta(seconds=20)
#: the library's default of 30 s would end the download of a large file; what counts is that the server goes on sending
_LONGEST_REQUEST, _LONGEST_SILENCE = timedelta(hours=12), timedelta(seconds=30)
_NO_BUCKET = "NoSuchBucket"
_DENIED = re.compile(r"status code: 40[13]\b")
#: what the library appends to what has happened: the body of the answer, and the structure of its error
_BEFORE_ANSWER = re.compile(r": <\?xml|\n\nDebug source")


class ObjectChanged(Exception):
    """An object is not there any more, or has another version."""


@dataclass(frozen=True)
class Listed:
    """An object in a list."""

    name: str
    version: str
    modified: datetime


class ObjectStore:
    """Objects of a bucket. Methods that are not coroutines block. Any of them may raise ObjectStoreUnavailable."""

    def __init__(self, url: str) -> None:
        """`url`: `s3://bucket` or `s3://bucket/prefix`."""
        self._url = url.rstrip("/")
        parts = urlsplit(self._url)
        # Without a region, servers other than Amazon's accept any.
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL", "")
        self._store = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            region=region,
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "timeout": _LONGEST_REQUEST,
                "read_timeout": _LONGEST_SILENCE,
            },
            retry_config={"max_retries": _RETRIES, "retry_timeout": _LONGEST_RETRY},
        )

    def url_of(self, name: str) -> str:
        """Return an object's URL."""
        return f"{self._url}/{name}"

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Return an object's content and version; None if there is none."""
        with self._errors(name):
            try:
                found = obstore.get(self._store, name)
                return bytes(found.bytes()), found.meta["e_tag"] or ""
            except FileNotFoundError as error:
                self._require_bucket(error)
                return None

    def create(self, name: str, content: bytes) -> str:
        """Store a new object and return its version. Raises ObjectChanged if there is one with other content."""
        return self._write(name, content, None)

    def replace(self, name: str, content: bytes, version: str) -> str:
        """Replace this version of an object and return the new one. Raises ObjectChanged if it is another one."""
        return self._write(name, content, version)

    def _write(self, name: str, content: bytes, version: str | None) -> str:
        with self._errors(name):
            try:
                put = partial(obstore.put, self._store, name, content, use_multipart=False)
                stored = put(mode="create") if version is None else put(mode={"e_tag": version})
                return stored["e_tag"] or ""
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileNotFoundError) as error:
                # A request whose answer was lost is sent again, and then the object has the new content already.
                found = self.get(name)
                if found is None or found[0] != content:
                    raise ObjectChanged(name) from error
                return found[1]

    def upload(self, name: str, content: Path | bytes) -> None:
        """Store an object, whether or not there is one."""
        with self._errors(name):
            obstore.put(self._store, name, content)

    def download(self, name: str, path: Path) -> None:
        """Write an object to a file. Raises OSErrors of the file, and FileNotFoundError if there is no such object."""
        with path.open("wb") as file, self._errors(name):
            for chunk in obstore.get(self._store, name).stream(_CHUNK):
                file.write(chunk)

    async def stream(self, name: str, start: int, stop: int) -> AsyncIterator[bytes]:
        """Request some bytes of an object and return their chunks. Raises FileNotFoundError if there is no object."""
        with self._errors(name):
            found = await obstore.get_async(self._store, name, options={"range": (start, stop)})
        return self._chunks(name, found)

    async def _chunks(self, name: str, found: "obstore.GetResult") -> AsyncIterator[bytes]:
        with self._errors(name):
            async for chunk in found.stream(_CHUNK):
                yield bytes(chunk)

    def names_in(self, folder: str) -> Iterator[Listed]:
        """List the objects whose names begin with `folder/`."""
        with self._errors(f"{folder}/"):
            for found in obstore.list(self._store, folder):
                for each in found:
                    yield Listed(each["path"], each["e_tag"] or "", each["last_modified"])

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects, whether or not they are there."""
        if wanted := list(names):
            with self._errors(wanted[0]):
                obstore.delete(self._store, wanted)

    def _require_bucket(self, error: FileNotFoundError) -> None:
        if _NO_BUCKET in str(error):
            raise self._unavailable("", error) from error

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        """Turn errors of the library into ours, but that an object is not there."""
        try:
            yield
        except FileNotFoundError as error:
            self._require_bucket(error)
            raise
        except exceptions.BaseError as error:
            raise self._unavailable(name, error) from error

    def _unavailable(self, name: str, error: Exception) -> ObjectStoreUnavailable:
        """Make our error. The library's text quotes the server's answer, and its own structures, at length."""
        text = str(error)
        code = re.search(r"<Code>(\w+)</Code>", text)
        shown = f" ({code[1]})" if code else ""
        if _NO_BUCKET in text:
            reason = "there is no such bucket"
        elif _DENIED.search(text):
            reason = f"access is denied{shown}: check the credentials and the bucket's policy"
        else:
            reason = " ".join(_BEFORE_ANSWER.split(text, 1)[0].split())[:300] + shown
        return ObjectStoreUnavailable(f"{self.url_of(name) if name else self._url}: {reason}")

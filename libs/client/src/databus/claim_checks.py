"""Values that the publisher stores outside of Kafka, because they are too large for their topics."""

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from databus.extras import of_extra
from databus.formats.databus import ClaimCheck
from databus_core.errors import ChangesLost, DiskUnavailable


def fetch(check: ClaimCheck) -> bytes:
    """Read a value.

    Raises ChangesLost if it is not there, or differs; DiskUnavailable and ObjectStoreUnavailable.
    """
    if check.url.startswith("s3:"):
        value: bytes = of_extra("bucket", "s3").read(check.url)
    else:
        value = _of_folder(check.url)
    if hashlib.sha256(value).hexdigest() != check.sha256:
        raise ChangesLost(f"the value in {check.url} is not the one that was published (SHA-256)")
    return value


def _of_folder(url: str) -> bytes:
    path = Path(unquote(urlsplit(url).path))
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ChangesLost(f"a value is stored in {path}, which is not there: mount publisher.claim_checks") from error
    except OSError as error:
        raise DiskUnavailable(f"{path} cannot be read ({error.strerror}): check publisher.claim_checks") from error

"""Decodes records of all formats but `databus`. How a value begins shows its format: our writers always begin alike."""

from typing import Protocol

import msgspec

from databus.formats import canal, debezium, maxwell
from databus.formats.databus import ClaimCheck
from databus.formats.event import Event, OptionsOf
from databus_core.errors import SchemaMismatch
from databus_core.events import Action

#: formats that can be read
FORMATS = ("databus", "debezium-json", "maxwell-json", "canal-json")

#: how records of format `databus` begin
DATABUS = b'{"Table":'
_CLAIM_CHECK = b'{"schema":"'


class Decoder(Protocol):
    """Decodes the records of a format."""

    def event(self, key: bytes | None, value: bytes) -> Event | None:
        """Decode a record; None if it is neither about rows nor about a table. Raises SchemaMismatch."""


class Claim(msgspec.Struct, frozen=True):
    """A record in place of one that was too large for its topic."""

    schema: str
    table: str
    action: Action
    claim_check: ClaimCheck


_decode_claim = msgspec.json.Decoder(Claim).decode


class OtherFormats:
    """Decodes records, each by its format."""

    def __init__(self, options_of: OptionsOf) -> None:
        self._decoders: list[tuple[tuple[bytes, ...], Decoder]] = [
            (debezium.PREFIXES, debezium.DebeziumDecoder(options_of)),
            (maxwell.PREFIXES, maxwell.MaxwellDecoder()),
            (canal.PREFIXES, canal.CanalDecoder(options_of)),
        ]

    def claim(self, value: bytes) -> Claim | None:
        """Decode a record in place of one that was too large; None for any other. Raises SchemaMismatch."""
        if not value.startswith(_CLAIM_CHECK):
            return None
        try:
            return _decode_claim(value)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SchemaMismatch(f"a record says wrongly where its value is stored: {error}") from error

    def event(self, key: bytes | None, value: bytes) -> Event | None:
        """Decode a record; None if it is neither about rows nor about a table. Raises SchemaMismatch."""
        for prefixes, decoder in self._decoders:
            if value.startswith(prefixes):
                return decoder.event(key, value)
        raise SchemaMismatch(
            f"a record is in none of the formats that this client reads ({', '.join(FORMATS)}): read only tables that "
            "are published in one of them"
        )

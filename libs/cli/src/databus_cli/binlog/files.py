"""Read binlog files as events, in the given order, piece by piece with bounded memory."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, TypedDict, Unpack

from databus_binlog import (
    AnyEvent,
    BinlogError,
    Decoder,
    Events,
    FormatDescription,
    InvalidPosition,
    MissingMetadata,
    Rotate,
    TableMap,
    read_file,
)

STANDARD_INPUT = "-"

#: bytes to read at once while skipping in a stream that cannot seek
_PIECE = 1 << 20
#: bytes of the magic number at the start of a file
_MAGIC = 4
#: bytes of an event's header
_HEADER = 19
#: offset of the event's size in its header
_SIZE_AT = 9
#: limit in bytes for the first event, FORMAT_DESCRIPTION, which has about 120 to 260
_DESCRIPTION_LIMIT = 1 << 12


class DecoderOptions(TypedDict, total=False):
    """Arguments of the Decoder that is made for each file."""

    wanted: Callable[[str, str], bool] | None
    describe: Callable[[TableMap], TableMap] | None
    by_statement: bool
    row_limit: int | None


def read_files(
    paths: Sequence[str],
    *,
    start: int | None = None,
    skip_head: Callable[[FormatDescription], None] = lambda _: None,
    count: Callable[[int], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    **options: Unpack[DecoderOptions],
) -> Iterator[tuple[AnyEvent, Mapping[str, TableMap]]]:
    """Decode files one after the other; yield each event with the tables it may refer to.

    A file's FormatDescription is yielded before the rest is decoded. With `start`, the offset of a later event in the
    first file, that file's FormatDescription is passed to `skip_head` instead.

    `count` is called with the size in bytes of each piece that is read, except for what `start` skips. `warn` is called
    with one line if the file that a file names as its successor is not the next of `paths`. Raises OSError, and
    BinlogError after all events before the failure were yielded.
    """
    for path, following in zip_longest(paths, paths[1:]):
        next_file = None
        for events in _read_file(path, start, skip_head, count, options):
            for event in events:
                if isinstance(event, Rotate) and not event.artificial:
                    next_file = event.next_file
                yield event, events.tables
        if next_file and following not in {None, STANDARD_INPUT} and file_name(following) != next_file:
            warn(f"{file_name(path)} continues in {next_file}, but the next file is {file_name(following)}")
        start = None


def _read_file(
    path: str,
    start: int | None,
    skip_head: Callable[[FormatDescription], None],
    count: Callable[[int], None],
    options: DecoderOptions,
) -> Iterator[Events]:
    begun = start is None
    try:
        with _open(path) as stream:

            def read(size: int) -> bytes:
                piece = stream.read(size)
                count(len(piece))
                return piece

            head = _read_head(stream)
            if start is None or start == _MAGIC:
                count(len(head))
                decoder = Decoder(file=file_name(path), **options)
                yield decoder.feed_file(head)
            else:
                decoder = _skip_to(start, stream, head, file_name(path), skip_head, options)
            for events in read_file(read, decoder):
                begun = begun or len(events) > 0
                yield events
    except MissingMetadata as error:
        raise MissingMetadata(f"{error}; other tables can be read with --tables") from error
    except BinlogError as error:
        if begun:
            raise
        raise InvalidPosition(
            f"no event can be read at {file_name(path)}:{start} ({error}); "
            "--from must be the offset of an event; for rows, it must be that of the first table map of their statement"
        ) from error


def _read_head(stream: BinaryIO) -> bytes:
    """Read the magic number and the first event, which should be the FORMAT_DESCRIPTION."""
    head = stream.read(_MAGIC + _HEADER)
    size = int.from_bytes(head[_MAGIC + _SIZE_AT :][:4], "little")
    return head + stream.read(max(0, min(size, _DESCRIPTION_LIMIT) - _HEADER))


def _skip_to(
    start: int,
    stream: BinaryIO,
    head: bytes,
    name: str,
    skip_head: Callable[[FormatDescription], None],
    options: DecoderOptions,
) -> Decoder:
    """Move the stream from the end of `head` to `start`, and return a decoder for the bytes from there on."""
    first = Decoder(file=name)
    for event in first.feed_file(head):
        if isinstance(event, FormatDescription):
            skip_head(event)
    if first.pending or start < len(head):
        raise InvalidPosition(f"the first two events start at {_MAGIC} and {len(head)}")
    if not _skip(stream, start - len(head)):
        raise InvalidPosition("the file ends before this offset")
    # The decoder needs the FORMAT_DESCRIPTION; it gets that event as if the event ended at `start`.
    description = head[_MAGIC:]
    decoder = Decoder(file=name, offset=start - len(description), **options)
    decoder.feed_file(description)
    return decoder


def _skip(stream: BinaryIO, count: int) -> bool:
    """Skip bytes; return whether the stream has that many."""
    if stream.seekable():
        target = stream.tell() + count
        return stream.seek(0, os.SEEK_END) >= stream.seek(target)
    while count and (piece := stream.read(min(count, _PIECE))):
        count -= len(piece)
    return count == 0


def _open(path: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else Path(path).open("rb")


def file_name(path: str) -> str:
    """Return a file's name without its folder, as the server names it."""
    if path == STANDARD_INPUT:
        return "stdin"
    return os.fsencode(Path(path).name).decode(errors="replace")

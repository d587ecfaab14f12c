"""A damaged binlog gives complete events or one of our errors, never anything else (`make fuzz` runs for longer)."""

import random

import pytest

from databus_binlog import CorruptEvent, Decoder
from fuzz import damage


@pytest.mark.parametrize("batch", range(4))
def test_a_damaged_log_gives_complete_events_or_an_error_of_ours(batch):
    for number in range(250 * batch, 250 * (batch + 1)):
        rng = random.Random(number)
        damage.decode(rng, damage.file(rng))


def test_a_changed_bit_under_a_checksum_is_an_error():
    data = (damage.FIXTURES / "mysql-binlog" / "m1.bin").read_bytes()
    flags = len(damage.MAGIC) + 17  # of FORMAT_DESCRIPTION, whose checksum leaves out the flag "file is in use"
    rng = random.Random(1)
    for at in rng.sample(range(damage.HEADER, len(data)), 500):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        decoder = Decoder()
        try:
            decoder.feed_file(changed)
            decoder.feed_file(b"")
        except CorruptEvent:
            continue
        assert at == flags or decoder.pending, at

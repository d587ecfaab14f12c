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
    in_use = len(damage.MAGIC) + 17, 0  # a flag that the checksum of FORMAT_DESCRIPTION leaves out
    rng = random.Random(1)
    for at in rng.sample(range(len(damage.MAGIC), len(data)), 500):
        bit = rng.randrange(8)
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        decoder = Decoder()
        try:
            decoder.feed_file(changed)
            decoder.feed_file(b"")
        except CorruptEvent:
            continue
        assert (at, bit) == in_use or decoder.pending, (at, bit)

"""From the binlogs in tests/golden, every format makes the records of its golden files (`make golden` renews both)."""

from itertools import product

import pytest

from golden.cases import CASES, KINDS, path, records


@pytest.mark.parametrize(("kind", "case"), [*product(KINDS, CASES)], ids=str)
def test_records_equal_the_golden_file(kind, case):
    assert records(kind, case).splitlines() == path(kind, case).read_bytes().splitlines()


def test_every_golden_file_belongs_to_a_case():
    assert {p for kind in KINDS for p in path(kind, CASES[0]).parent.iterdir()} == {
        path(kind, case) for kind, case in product(KINDS, CASES)
    }

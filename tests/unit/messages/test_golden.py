"""Every format makes of the binlogs in tests/golden what its golden file there says (`make golden` writes them)."""

from itertools import product

import pytest

from golden.cases import CASES, KINDS, path, records


@pytest.mark.parametrize(("kind", "case"), [*product(KINDS, CASES)], ids=str)
def test_records_are_those_of_the_golden_file(kind, case):
    assert records(kind, case).splitlines() == path(kind, case).read_bytes().splitlines()


def test_there_is_no_golden_file_of_a_case_that_is_gone():
    assert {p for kind in KINDS for p in path(kind, CASES[0]).parent.iterdir()} == {
        path(kind, case) for kind, case in product(KINDS, CASES)
    }

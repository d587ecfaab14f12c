"""MySQL's GTID sets behave like Python's sets of transactions; MariaDB's positions are compared domain by domain."""

from hypothesis import given, settings
from hypothesis import strategies as st

from databus_binlog import GtidSet, MariaDbGtidPosition, MySqlGtidSet

A, B = "896e7882-18fe-11ef-ab88-22222d34d411", "00112233-4455-6677-8899-aabbccddeeff"

transactions = st.sets(st.tuples(st.sampled_from([A, B, f"{A}:blue"]), st.integers(1, 25)), max_size=40)


def mysql(transactions: set[tuple[str, int]]) -> MySqlGtidSet:
    executed = MySqlGtidSet()
    for source, number in transactions:
        executed.add(f"{source}:{number}")
    return executed


@settings(deadline=None)
@given(transactions, transactions)
def test_mysql_gtid_sets_behave_like_sets_of_transactions(a, b):
    assert mysql(a).minus(mysql(b)) == mysql(a - b)
    assert mysql(a).covers(mysql(b)) == (a >= b)
    assert bool(mysql(a)) == bool(a)
    assert GtidSet.parse("mysql", str(mysql(a))) == mysql(a)
    merged = mysql(a)
    merged.merge(str(mysql(b)))
    assert merged == mysql(a | b)


histories = st.dictionaries(st.integers(0, 2), st.tuples(st.sampled_from([1, 2]), st.integers(1, 9)))


def mariadb(last: dict[int, tuple[int, int]]) -> MariaDbGtidPosition:
    return MariaDbGtidPosition.from_text(",".join(f"{d}-{s}-{n}" for d, (s, n) in last.items()))


@settings(deadline=None)
@given(histories, histories)
def test_a_mariadb_position_minus_another_has_the_domains_in_which_the_first_is_ahead(a, b):
    ahead = {
        d: last for d, last in a.items() if d not in b or last[1] > b[d][1] or (last != b[d] and last[1] == b[d][1])
    }
    assert mariadb(a).minus(mariadb(b)) == mariadb(ahead)
    assert mariadb(b).covers(mariadb(a)) == (not ahead)


def test_the_same_sequence_number_of_two_mariadb_servers_is_two_transactions():
    one, other = mariadb({0: (1, 100)}), mariadb({0: (2, 100)})
    assert not one.covers(other)
    assert not other.covers(one)


def test_a_set_can_be_restricted_to_the_sources_of_another_set():
    executed = GtidSet.parse("mysql", f"{A}:5-7,{B}:1-3,{A}:blue:9")
    assert str(executed.of_sources_in(mysql({(A, 1)}))) == f"{A}:5-7"
    position = mariadb({0: (2, 9), 3: (1, 1)})
    assert str(position.of_sources_in(mariadb({0: (1, 100), 7: (1, 5)}))) == "0-2-9"


def test_a_mariadb_server_lacks_our_transactions_that_are_newer_than_its_binlog_state():
    ours = mariadb({0: (1, 100), 7: (1, 5)})
    assert str(ours.missing_from("0-1-100,0-2-150,7-1-9")) == ""
    assert str(ours.missing_from("0-1-90,0-2-150,7-1-5")) == "0-1-100", "0-2-150 was written by another server"
    assert str(ours.missing_from("0-1-100")) == "7-1-5"

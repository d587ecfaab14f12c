"""Random streams of the pipe's events (`databus_core.events`), as hypothesis strategies.

hypothesis chooses tables and what each transaction consists of, so that it can shrink them; the values follow from a
number for each transaction.
"""

from hypothesis import strategies as st

from common.event_tables import values_of_tables
from common.event_writer import EventWriter, Stream, Transaction

#: transactions that are often ordinary; and what precedes or follows their changes
_KINDS = ["ordinary"] * 60 + ["empty", "chunk", "skipped", "decided", "schema"]
_CHANGES = ["insert", "update", "delete"] * 20 + ["alter", "truncate", "oversized"]
_BETWEEN = [""] * 20 + ["heartbeat", "prepared", "decided"]
_FAULTS = ["gap", "unknown table", "malformed", "commit outside", "rows outside", "second begin", "end inside"]
_ENDS = [""] * 20 + ["End"] * 2 + _FAULTS


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Draw a stream of a few transactions."""
    tables = draw(st.lists(st.sampled_from(list(values_of_tables())), min_size=1, max_size=4, unique=True))
    changes = st.tuples(st.integers(0, len(tables) - 1), st.sampled_from(_CHANGES), st.integers(1, 3))
    transactions = st.builds(
        Transaction,
        kind=st.sampled_from(_KINDS),
        changes=st.lists(changes, min_size=1, max_size=3),
        between=st.sampled_from(_BETWEEN),
        seed=st.integers(0, 2**32),
    )
    writer = EventWriter(
        tables,
        flavor=draw(st.sampled_from(["mysql", "mariadb"])),
        gtids=draw(st.booleans()),
        damage=draw(st.sampled_from([0.0, 0.0, 0.005])),
        cuts=draw(st.sampled_from([0.0, 0.0, 0.02, 0.2])),
    )
    events = [
        *writer.start(),
        *(e for each in draw(st.lists(transactions, min_size=8, max_size=30)) for e in writer.events(each)),
    ]
    return writer.stream([*events, *writer.end(draw(st.sampled_from(_ENDS)))])

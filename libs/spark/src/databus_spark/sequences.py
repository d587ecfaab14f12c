"""The order of the entries of a change log: that of the source, by the header `databus.sequence` (ADR 18).

A sequence is text, the ordinal of the transaction and of the row, and sorts as text.
"""


def last_of(transaction: int) -> str:
    """Return a text that is not less than the sequences of a transaction, and less than those after it."""
    return f"{transaction:016d}-9999999999" if transaction >= 0 else ""


def transaction_of(sequence: str) -> int:
    """Return the ordinal of the transaction."""
    return int(sequence[:16])


def between(after: int, last: int) -> str:
    """Build the SQL condition of the sequences after one transaction, up to and with another one."""
    return f"_seq > '{last_of(after)}' and _seq <= '{last_of(last)}'"

"""A table as a consumer has it that stores the last row for each key, and empties the table on TRUNCATE."""

from faults.ledger import Book, Change, Row, checksum


class Violation(AssertionError):
    """A change is lost, repeated, out of order or wrong, its transaction was split, or a key's position does not grow.

    A row of a backfill is not the row at this place of the stream. The resulting table differs from the database's.
    """


class Copy:
    """The copy of one table, beside the table as it is in the database at the same place of the stream."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.key_of = book.key_of
        self.rows: dict[tuple[str, ...], Row] = {}
        self._source: dict[tuple[str, ...], Row] = {}

    def apply(self, change: Change) -> None:
        """Apply a change. Raises Violation if a checksum is wrong."""
        for rows in self.rows, self._source:
            self._apply(change, rows)

    def skip(self, change: Change) -> None:
        """Note that a change was left out."""
        self._apply(change, self._source)

    def load(self, row: Row, where: str) -> None:
        """Store a row of a backfill. Raises Violation if it is not the row at this place of the stream."""
        key, number = self.key_of(row), row["number"]
        self._check(row)
        # Only the next change shows how many were left out, so until then nobody knows the row.
        if self._book.left_out is None and self._source.get(key) != row:
            now = self._source.get(key, {}).get("number", "no row")
            raise Violation(
                f"{where}: {self._book.name}: a backfill has number {number}, but at this place it is {now}"
            )
        if not self._book.key and key in self.rows:
            raise Violation(f"{where}: {self._book.name}: number {number} of a table without a key is loaded twice")
        self.rows[key] = dict(row)

    def _apply(self, change: Change, rows: dict[tuple[str, ...], Row]) -> None:
        if change.column:
            for row in rows.values():
                row[change.column] = f"d{change.column[1:]}"
            return
        if change.action != "insert":
            rows.pop(self.key_of(change.images[0]), None)
        if change.action != "delete":
            row = change.images[-1]
            self._check(row)
            rows[self.key_of(row)] = dict(row)

    def _check(self, row: Row) -> None:
        if row["checksum"] != checksum(self._book.name, row):
            raise Violation(f"{self._book.name}: the checksum of number {row['number']} is wrong")

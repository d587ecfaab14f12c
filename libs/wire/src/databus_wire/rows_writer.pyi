"""Writers of the records of rows events, without Python objects for ordinary rows."""

class Counter:
    """Counts the rows of the open transaction that one output publishes."""

class RowsWriter:
    """Writes the records of the rows of one table. Each format has a subclass."""

    def publish_to(self, partitions: tuple[object, ...], key: tuple[int, ...], counter: Counter) -> None:
        """Set where the records go.

        partitions: several if a row's partition is chosen by its key; `EntryWalk` looks for the open batch of each.
        key: indexes of the key's columns.
        counter: counts the rows of the table's output.
        """

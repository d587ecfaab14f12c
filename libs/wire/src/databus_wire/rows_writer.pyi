"""Writers of the records of rows events, without Python objects for usual rows."""

class Counter:
    """Counts the rows of the open transaction that one output publishes."""

class RowsWriter:
    """Writes the records of the rows of one table to one partition. Each format has a subclass."""

    def publish_to(self, partition: object, counter: Counter) -> None:
        """Set the partition, for which `EntryWalk` looks for the open batch, and the counter of the output's rows."""

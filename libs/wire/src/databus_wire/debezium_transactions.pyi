"""Transaction metadata of `debezium-json`, in compiled code."""

from collections.abc import Callable, Mapping
from typing import final

@final
class TransactionWriter:
    """Writes the BEGIN and END messages of the transactions that one output publishes, and blocks of their rows.

    partition: that of the topic of transactions.
    block: what is in a transaction block before the id, before `total_order`, before `data_collection_order`, and
        after it.
    begin_message: returns id, key and value of a BEGIN message, from the GTID, file, start of the first row change and
        time of a transaction.
    end_message: returns key and value of the END message, from the numbers of rows by table.
    """

    def __init__(
        self,
        partition: object,
        block: tuple[bytes, bytes, bytes, bytes],
        begin_message: Callable[[str, str, int, int], tuple[bytes, bytes, bytes]],
        end_message: Callable[[Mapping[str, int]], tuple[bytes, bytes]],
    ) -> None: ...

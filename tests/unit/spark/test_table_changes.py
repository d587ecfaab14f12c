"""The statements of a table, as the partitions of its topic have them."""

from itertools import permutations

from databus_spark.table_changes import Statement, in_order


def test_the_two_messages_of_create_or_replace_keep_their_order_whatever_copy_is_read_first() -> None:
    def message(action: str, version: int, partition: int, offset: int) -> Statement:
        return Statement("0000000000000007-0000000000", action, "CREATE OR REPLACE", version, "t", partition, offset)

    copies = [
        message("drop", 1, partition=0, offset=8),
        message("create", 2, partition=0, offset=9),
        message("drop", 1, partition=1, offset=3),
        message("create", 2, partition=1, offset=4),
    ]
    found = {tuple(each.action for each in in_order(list(order))) for order in permutations(copies)}
    assert found == {("drop", "create")}

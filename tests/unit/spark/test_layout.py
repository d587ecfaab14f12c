"""The paths of a lake."""

from databus_spark.layout import Layout


def test_a_local_lake_may_have_any_name() -> None:
    assert Layout("file:///var/my%20lake%25/").changes == "file:///var/my lake%/changes"

"""Which settings of a server are refused, and that all faults are reported at once."""

import pytest

from databus_binlog import Server
from databus_core.errors import SourceNotReady
from databus_core.readiness import require_ready

GOOD = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}


def server(**variables: str) -> Server:
    return Server("mariadb", "10.11.1", 1, "", True, GOOD | variables)


def test_a_server_that_logs_full_rows_is_ready() -> None:
    require_ready(server(), "db:1")
    require_ready(server(log_bin="1", binlog_format="row"), "db:1")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("log_bin", "OFF"),
        ("binlog_format", "MIXED"),
        ("binlog_row_image", "MINIMAL"),
    ],
)
def test_each_fault_names_its_setting(variable: str, value: str) -> None:
    with pytest.raises(SourceNotReady, match=f"^database db:1: {variable} is {value}: .*set {variable}"):
        require_ready(server(**{variable: value}), "db:1")


def test_noblob_is_accepted_only_if_partial_rows_are_published() -> None:
    require_ready(server(binlog_row_image="noblob"), "db:1", partial=True)
    with pytest.raises(SourceNotReady, match="binlog_row_image is NOBLOB"):
        require_ready(server(binlog_row_image="NOBLOB"), "db:1")
    with pytest.raises(SourceNotReady, match="binlog_row_image is MINIMAL"):
        require_ready(server(binlog_row_image="MINIMAL"), "db:1", partial=True)


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(SourceNotReady) as caught:
        require_ready(server(log_bin="OFF", binlog_format="STATEMENT"), "db:1")
    assert len(str(caught.value).splitlines()) == 2

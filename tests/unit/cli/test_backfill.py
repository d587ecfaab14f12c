"""The arguments of `databus backfill`."""

import pytest

from databus_cli.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["start"], "the following arguments are required: TABLE"),
        (["start", "orders"], "argument TABLE: 'orders' is not a schema.table pattern"),
        (["pause"], "one of the arguments BACKFILL --all is required"),
        (["cancel", "a1", "--all"], "argument --all: not allowed with argument BACKFILL"),
        (["resume", "a.b.c"], "argument BACKFILL: 'a.b.c' is not a schema.table pattern"),
        (["resume", "a*"], "argument BACKFILL: 'a*' is neither the id of a backfill nor a table as schema.table"),
        (["list", "--json", "--watch"], "argument --watch: not allowed with argument --json"),
    ],
)
def test_wrong_usage_is_explained(capsys: pytest.CaptureFixture[str], arguments: list[str], error: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["backfill", *arguments])
    assert caught.value.code == 2
    assert error in capsys.readouterr().err

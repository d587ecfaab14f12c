"""XA transactions that stay prepared are visible: in a metric, and once in the log."""

import time

import pytest

from databus_core.metrics.reader import REGISTRY
from databus_reader.open_transactions import OpenTransactions

OLD, YOUNG = "X'31',X'',1", "X'32',X'',1"


def ages() -> dict[str, float]:
    return {
        sample.labels["xid"]: sample.value
        for family in REGISTRY.collect()
        if family.name == "databus_reader_prepared_seconds"
        for sample in family.samples
    }


def test_a_transaction_that_stays_prepared_has_its_age_in_a_metric_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = time.time()
    prepared = [(OLD, int((now - 100) * 1e6)), (YOUNG, int((now - 10) * 1e6))]
    transactions = OpenTransactions()
    transactions.report(prepared)
    transactions.report(prepared)
    assert ages() == {OLD: pytest.approx(100, abs=5)}
    assert [OLD in record.getMessage() for record in caplog.records] == [True]
    transactions.report(prepared[1:])
    assert ages() == {}


def test_a_new_generation_reports_only_its_own_transactions() -> None:
    OpenTransactions().report([(OLD, 0)])
    OpenTransactions()
    assert ages() == {}

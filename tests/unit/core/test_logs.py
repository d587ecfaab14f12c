"""The log: lines in two formats, bound fields, levels, and no messages that may quote a row."""

import asyncio
import gc
import inspect
import json
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import pytest
from aiokafka.conn import AIOKafkaConnection

from databus_binlog import Position
from databus_core.errors import KafkaUnavailable, SchemaMismatch
from databus_core.log_events import Fields, LogEvent
from databus_core.logs import bound, configure, get_logger, position_fields, report_background_error
from databus_core.settings import Log
from databus_core.settings.log import LogLevel
from reference import logs as reference

_LOGGERS = (
    *("databus", "databus.reader", "aiokafka", "asyncmy", "httpx", "py4j", "uvicorn"),
    *("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal"),
)

log = get_logger("databus_reader.service")


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Restore pytest's own logging after a test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = handlers, level
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.NOTSET)


def json_lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_the_reference_is_generated_from_the_list_of_events() -> None:
    path, text = reference.page()
    assert path.read_text() == text, "run `make docs`"


def test_every_event_has_a_name_in_snake_case_and_a_sentence() -> None:
    for event in LogEvent:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", event)
        assert re.fullmatch(r"[A-Zd].*\.", event.meaning)


def test_a_json_line_has_event_message_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    configure("reader", Log(format="json"), pipeline="shop")
    log.info(LogEvent.READING, "reading db:3306", host="db:3306", rows=7)
    (line,) = json_lines(capsys)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "service": "reader",
        "event": "reading",
        "message": "reading db:3306",
        "pipeline": "shop",
        "host": "db:3306",
        "rows": 7,
        "logger": "databus.reader.service",
    }


def test_a_console_line_quotes_values_and_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    configure("reader", Log(), pipeline="shop")
    log.warning(LogEvent.HOST_REFUSED, "too\nold\x1b[31m", host="db:3306", table='shop."odd" name', rows=0)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.partition("Z ")[2] == (
        'WARNING reader host_refused: too old [31m pipeline=shop host=db:3306 table="shop.\\"odd\\" name" rows=0'
    )


def test_an_error_keeps_the_fields_of_the_blocks_it_leaves() -> None:
    error = SchemaMismatch("a row does not fit its table")
    error.fields = Fields(position="binlog.1:4")
    with suppress(SchemaMismatch), bound(generation="a1", position="binlog.1:0"):
        raise error
    assert error.fields == {"generation": "a1", "position": "binlog.1:4"}
    assert SchemaMismatch.fields == {}


async def test_bound_fields_apply_to_the_block_and_what_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    configure("reader", Log(format="json"))

    async def task() -> None:
        log.info(LogEvent.READING, "in a task")
        await asyncio.to_thread(log.info, LogEvent.READING, "in a thread")

    with bound(generation="a1", host="db:1"):
        with bound(host="db:2"):
            await asyncio.create_task(task())
        log.info(LogEvent.READING, "after the inner block", host="db:3")
    log.info(LogEvent.READING, "outside")
    fields = [(line.get("generation"), line.get("host")) for line in json_lines(capsys)]
    assert fields == [("a1", "db:2"), ("a1", "db:2"), ("a1", "db:3"), (None, None)]


def test_single_loggers_can_have_levels_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    levels: dict[str, LogLevel] = {"databus.reader": "debug", "httpx": "info"}
    configure("reader", Log(format="json", level="warning", levels=levels))
    log.debug(LogEvent.READING, "1")
    get_logger("databus_core.election").info(LogEvent.STANDBY, "no")
    get_logger("databus_core.election").warning(LogEvent.STANDBY, "2")
    logging.getLogger("httpx").info("3")
    logging.getLogger("aiokafka.client").error("no")
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").warning("no")
    logging.getLogger("another").info("no")
    logging.getLogger("another").warning("4")
    logging.getLogger("uvicorn.error").info("no")
    logging.getLogger("uvicorn.error").error("5")
    assert [line["message"] for line in json_lines(capsys)] == ["1", "2", "3", "4", "5"]


def test_lines_of_libraries_and_warnings_of_python_have_the_event_library(capsys: pytest.CaptureFixture[str]) -> None:
    configure("reader", Log(format="json"))
    logging.getLogger("library").warning("%d of %d", 1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    first, second = json_lines(capsys)
    assert (first["event"], first["logger"], first["message"]) == ("library", "library", "1 of 2")
    assert (second["event"], second["logger"]) == ("library", "py.warnings")


def fail() -> None:
    try:
        int("secret row")
    except ValueError as error:
        raise KafkaUnavailable("no broker answers") from error


@pytest.mark.parametrize("style", ["json", "console"])
def test_an_unknown_error_is_written_without_its_message(
    style: Literal["json", "console"], capsys: pytest.CaptureFixture[str]
) -> None:
    configure("reader", Log(format=style))
    try:
        try:
            fail()
        except KafkaUnavailable as error:
            raise ExceptionGroup("rows: secret row", [error, KeyError("secret row")]) from None
    except ExceptionGroup as error:
        log.error(LogEvent.CRASHED, "an unknown error", cause=error)
    text = capsys.readouterr().err
    assert "secret" not in text
    assert "KafkaUnavailable: no broker answers" in text
    assert f"{__file__}:{fail.__code__.co_firstlineno + 4} fail" in text
    for kind in ("builtins.ExceptionGroup", "builtins.ValueError", "builtins.KeyError"):
        assert kind in text


def test_a_long_gtid_set_is_cut() -> None:
    assert position_fields(Position("0-1-9", "binlog.1", 4)) == {"gtid": "0-1-9", "position": "binlog.1:4"}
    assert position_fields(Position()) == position_fields(None) == {}
    assert len(position_fields(Position("x" * 5000))["gtid"]) == 301  # with an ellipsis


async def test_an_error_that_nothing_waited_for_is_logged_without_its_message(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise ValueError("secret row")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_background_error)
    try:
        task = asyncio.create_task(broken())
        await asyncio.wait({task})
        del task
        gc.collect()
        future = loop.create_future()
        future.set_exception(ConnectionResetError())  # asyncio's streams leave such futures behind; they are not logged
        del future
        gc.collect()
        # a client of Kafka whose start is cancelled leaves a connection, which aiokafka closes and reports so
        closed = "Unclosed AIOKafkaConnection"
        assert closed in inspect.getsource(AIOKafkaConnection.__del__)
        loop.call_exception_handler({"message": closed})
    finally:
        loop.set_exception_handler(None)
    (record,) = caplog.records
    assert record.event is LogEvent.BACKGROUND_ERROR
    assert record.getMessage() == "Task exception was never retrieved"
    assert record.fields["task"].endswith("broken")

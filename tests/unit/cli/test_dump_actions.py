"""What `databus dump` sends to the dump API, what it prints, and its wrong usage."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

from databus_cli.__main__ import main
from databus_cli.dump.create import DumpBar
from databus_cli.dump.texts import amount
from databus_core.dump_client import DumpApi
from databus_core.events import Table
from databus_core.manifest import DumpFile, DumpProgress, FileFormat, Manifest, State

PENDING = Manifest(id="d-1", pipeline="p", state=State.PENDING, created=datetime(2026, 11, 27, tzinfo=UTC))
PROGRESS = DumpProgress(rows=250, bytes=2_000_000, estimated_rows=1000, eta_seconds=75.4)
RUNNING = msgspec.structs.replace(PENDING, state=State.RUNNING, progress=PROGRESS)
CANCELLED = msgspec.structs.replace(PENDING, state=State.CANCELLED, error="a client has cancelled it")
FORMATS = (FileFormat.JSONL, FileFormat.PARQUET)
COMPLETE = msgspec.structs.replace(
    PENDING,
    state=State.COMPLETE,
    formats=FORMATS,
    files=tuple(DumpFile(name=kind, format=kind, table="s.t", rows=1234, bytes=500, sha256="") for kind in FORMATS),
)


class Api(HTTPServer):
    """Answers requests with manifests, in their order; without one, with 404."""

    def __init__(self, *answers: Manifest) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        #: (method and path, body, header Authorization)
        self.requests: list[tuple[str, str, str | None]] = []
        #: set when a dump is asked for by its id
        self.asked = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.requests.append((f"{self.command} {self.path}", body, self.headers["Authorization"]))
        if self.path.startswith("/v1/dumps/"):
            self.server.asked.set()
        content = msgspec.json.encode(self.server.answers.pop(0)) if self.server.answers else b'{"detail": "Not Found"}'
        self.send_response(200 if b'"id"' in content else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def serve() -> Iterator[object]:
    started: list[Api] = []

    def start(*answers: Manifest) -> Api:
        started.append(Api(*answers))
        threading.Thread(target=started[-1].serve_forever, kwargs={"poll_interval": 0.01}).start()
        return started[-1]

    yield start
    for api in started:
        api.shutdown()
        api.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    original = DumpApi.__init__
    monkeypatch.setattr(DumpApi, "__init__", lambda self, url, **options: original(self, url, 0.001, **options))


def test_create_prints_the_id_and_waits_until_the_dump_has_ended(
    serve, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("secret\n")
    api = serve(PENDING, RUNNING, CANCELLED)
    arguments = ["--tables", "s.*", "--wait", "--url", api.url, "--api-key-file", str(tmp_path / "key")]
    assert main(["dump", "create", *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("d-1\n", "databus: dump d-1 cancelled: a client has cancelled it\n")
    assert [line for line, _, _ in api.requests] == ["POST /v1/dumps", *["GET /v1/dumps/d-1"] * 2]
    assert json.loads(api.requests[0][1]) == {"tables": ["s.*"]}
    assert {key for _, _, key in api.requests} == {"Bearer secret"}


def test_an_interrupt_ends_the_waiting_and_not_the_dump(serve) -> None:
    api = serve(PENDING, *[RUNNING] * 100)
    # A test run in the background of a script inherits that interrupts are ignored.
    command = ["env", "--default-signal=INT", Path(sys.executable).parent / "databus", "dump", "create", "--wait"]
    command += ["--url", api.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "d-1\n"
        assert api.asked.wait(30)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == (
        "databus: no longer waiting; dump d-1 continues: databus dump show d-1; databus dump cancel d-1 ends it\n"
    )
    assert all(line.startswith("GET") for line, _, _ in api.requests[1:])


def test_create_does_not_wait_without_a_terminal(serve, capsys: pytest.CaptureFixture[str]) -> None:
    api = serve(PENDING)
    assert main(["dump", "create", "--json", "--url", api.url]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "pending"
    assert api.requests == [("POST /v1/dumps", "{}", None)]


def test_the_key_of_the_configuration_is_sent(serve, tmp_path: Path) -> None:
    api = serve(PENDING)
    config = tmp_path / "databus.yaml"
    config.write_text(json.dumps({"name": "p", "dumps": {"url": api.url, "api_key": "of-settings"}}))
    assert main(["dump", "show", "d-1", "--config", str(config)]) == 0
    assert [key for _, _, key in api.requests] == ["Bearer of-settings"]


def test_every_dump_is_cancelled_although_one_cannot_be(serve, capsys: pytest.CaptureFixture[str]) -> None:
    """A dump API of an earlier version has no such request."""
    api = serve(CANCELLED)
    assert main(["dump", "cancel", "d-1", "d-2", "--url", api.url]) == 1
    done, refused = capsys.readouterr().err.splitlines()
    assert done == "databus: dump d-1 is cancelled"
    assert "/v1/dumps/d-2/cancel: 404" in refused
    assert [line for line, _, _ in api.requests] == ["POST /v1/dumps/d-1/cancel", "POST /v1/dumps/d-2/cancel"]


def test_the_bar_follows_the_progress_if_the_api_has_it() -> None:
    bar = DumpBar()
    [task] = bar._progress.tasks
    bar.show(msgspec.structs.replace(RUNNING, progress=None))
    assert (task.description, task.total, task.fields["counts"]) == ("running", None, "")
    bar.show(RUNNING)
    assert (task.completed, task.total) == (250, 1000)
    assert task.fields["counts"] == "250 of about 1,000 rows, 2.0 MB, 0:01:15 left"
    bar.show(COMPLETE)
    assert (task.description, task.completed, task.total) == ("complete", 1234, 1234)
    assert amount(COMPLETE) == "1,234 rows, 1.0 kB"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "../x"], "'../x' is not the id of a dump"),
        (["download"], "required: DUMP_ID"),
        (["download", "d-1", "--format", "csv"], "invalid choice"),
        (["create", "--tables", "orders"], "'orders' is not a schema.table pattern"),
        (["list", "--url", "localhost"], "is not a URL"),
        (["delete"], "required: DUMP_ID"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dump", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_name_that_leaves_the_folder_is_refused(serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = DumpFile(name="../evil", table="s.t", rows=1, bytes=1, sha256="")
    table = Table(schema="s", name="t", columns=())
    api = serve(msgspec.structs.replace(COMPLETE, tables=(table,), files=(file,)))
    assert main(["dump", "download", "d-1", str(tmp_path / "folder"), "--url", api.url]) == 1
    assert "'../evil' is no name for a file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

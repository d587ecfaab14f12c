"""A local schema registry with the part of Confluent's API that producers use. Schema ids count from 1."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread


@contextmanager
def registry() -> Iterator[tuple[str, list[str]]]:
    """Serve a registry; yields its URL and the list of registered schemas, in the order of their ids."""
    schemas: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
            if schema not in schemas:
                schemas.append(schema)
            answer = json.dumps({"id": schemas.index(schema) + 1}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", schemas
        finally:
            server.shutdown()
            thread.join()

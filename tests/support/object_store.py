"""An S3 server, gofakes3, and a proxy before it that counts requests and breaks some of them.

The server is built by `go install` into the cache of the judges, and started by the tests on a free port.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.support.oracle import filling, oracle_cache

MODULE = "github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0"
BUCKET = "logs"
START_SECONDS = 60
USER, SECRET = "reader", "secret"
_DENIED = (
    "<Error><Code>SignatureDoesNotMatch</Code><Message>The request signature does not match the key.</Message></Error>"
)
_CHANGED = "<Error><Code>PreconditionFailed</Code><Message>A condition did not hold.</Message></Error>"
_BUSY = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class StoreUnavailableError(RuntimeError):
    """Go is not there, or cannot build the server; the message says which."""


@dataclass
class Request:
    """One request of a reader.

    Attributes:
        key: of the object; empty for a listing.
        size: bytes of the body that the reader got.
    """

    method: str
    key: str
    query: str
    range: str | None
    status: int = 0
    size: int = 0


@dataclass
class Faults:
    """How the proxy breaks what it passes on.

    Attributes:
        before: called with each request; what it returns is done: "busy", "cut", "no-range", "slow"; None: nothing.
        page_size: keys of one page of a listing; 0 for the server's.
        keeps_conditions: answer 412 where If-Match does not hold; gofakes3 does not look at it.
    """

    before: Callable[[Request], str | None] = lambda request: None
    page_size: int = 0
    keeps_conditions: bool = True


@dataclass
class ObjectStore:
    """A running server: what it was asked, and how it breaks."""

    endpoint: str
    upstream: str
    requests: list[Request] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def put(self, key: str, content: bytes) -> None:
        """Store an object, behind the proxy's back."""
        connection = http.client.HTTPConnection(self.upstream)
        digest = hashlib.sha256(content).hexdigest()
        connection.request("PUT", f"/{BUCKET}/{quote(key)}", content, {"x-amz-content-sha256": digest})
        assert connection.getresponse().status == 200
        connection.close()

    def remove(self, key: str) -> None:
        connection = http.client.HTTPConnection(self.upstream)
        connection.request("DELETE", f"/{BUCKET}/{quote(key)}")
        assert connection.getresponse().status in (200, 204)
        connection.close()

    def put_all(self, directory: Path, prefix: str) -> str:
        """Store the files below a directory; the URL of the prefix."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(directory)}", path.read_bytes())
        return f"s3://{BUCKET}/{prefix}"

    @contextmanager
    def counted(self) -> Iterator[list[Request]]:
        start, requests = len(self.requests), list[Request]()
        yield requests
        requests += self.requests[start:]

    @property
    def environment(self) -> dict[str, str]:
        """What a reader needs."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "eu-central-1",
        }


@contextmanager
def running_store() -> Iterator[ObjectStore]:
    """A server with an empty bucket.

    Raises:
        StoreUnavailableError: it cannot be built.
    """
    program, port = _program(), _free_port()
    process = subprocess.Popen(
        [program, "-backend", "memory", "-host", f"127.0.0.1:{port}", "-initialbucket", BUCKET, "-quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        proxy = _Proxy(("127.0.0.1", 0), _Handler)
        proxy.store = ObjectStore(f"http://127.0.0.1:{proxy.server_address[1]}", f"127.0.0.1:{port}")
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy.store
        finally:
            proxy.shutdown()
            proxy.server_close()
    finally:
        process.kill()
        process.wait()


@contextmanager
def store_or_skip() -> Iterator[ObjectStore]:
    """Run a store; skip the test without one, also where judges have to be there: Go is none of them."""
    try:
        with running_store() as store:
            yield store
    except StoreUnavailableError as error:
        pytest.skip(str(error))


def _program() -> str:
    go, cache = shutil.which("go"), oracle_cache()
    program = cache / f"gofakes3-{MODULE.rpartition('@')[2]}" / "gofakes3"
    if program.exists():
        return str(program)
    if go is None:
        raise StoreUnavailableError("go is missing, which builds gofakes3, the S3 server of these tests")
    with filling(cache):
        built = subprocess.run(
            [go, "install", MODULE],
            env={**os.environ, "GOBIN": str(program.parent), "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            check=False,
        )
    if built.returncode:
        raise StoreUnavailableError(f"gofakes3 cannot be built: {built.stderr.strip()[-500:]}")
    return str(program)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(START_SECONDS * 20):
        with socket.socket() as caller:
            if caller.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "gofakes3 has ended"
        time.sleep(0.05)
    raise AssertionError("gofakes3 does not listen")


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    store: ObjectStore


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Proxy

    def do_GET(self) -> None:
        store, url = self.server.store, urlsplit(self.path)
        key = url.path.strip("/").partition("/")[2]
        request = Request(self.command, key, url.query, self.headers.get("Range"))
        fault = store.faults.before(request)
        store.requests.append(request)
        if f"Credential={USER}/" not in self.headers.get("Authorization", ""):
            self._answer(request, 403, {}, _DENIED.encode())
        elif fault == "busy":
            self._answer(request, 503, {}, _BUSY.encode())
        else:
            self._pass_on(request, fault)

    do_HEAD = do_GET  # noqa: N815 - the base class's name

    def _pass_on(self, request: Request, fault: str | None) -> None:
        store = self.server.store
        wanted, path = self.headers.get("If-Match"), self.path
        if (
            wanted is not None
            and store.faults.keeps_conditions
            and self._ask("HEAD", path, {})[1].get("ETag") != wanted
        ):
            self._answer(request, 412, {}, _CHANGED.encode())
            return
        if "list-type" in request.query and store.faults.page_size:
            path += f"&max-keys={store.faults.page_size}"
        has_range = request.range is not None and fault != "no-range"
        status, headers, body = self._ask(request.method, path, {"Range": request.range or ""} if has_range else {})
        self._answer(request, status, headers, body, fault)

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.server.store.upstream)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        kept = ("ETag", "Last-Modified", "Content-Range", "Content-Type", "Content-Length")
        return response.status, {name: value for name in kept if (value := response.headers.get(name))}, body

    def _answer(
        self, request: Request, status: int, headers: dict[str, str], body: bytes, fault: str | None = None
    ) -> None:
        request.status = status
        self.send_response(status)
        size = headers.pop("Content-Length", str(len(body))) if request.method == "HEAD" else str(len(body))
        headers.pop("Content-Length", None)
        for name, value in {**headers, "Content-Length": size}.items():
            self.send_header(name, value)
        self.end_headers()
        if request.method == "HEAD":
            return
        sent = body[: len(body) // 2] if fault == "cut" else body
        request.size = len(sent)
        if fault == "slow":
            for start in range(0, len(sent), max(len(sent) // 8, 1)):
                self.wfile.write(sent[start : start + max(len(sent) // 8, 1)])
                time.sleep(0.02)
        else:
            self.wfile.write(sent)
        if fault == "cut":
            self.wfile.flush()
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""

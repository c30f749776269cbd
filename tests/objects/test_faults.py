"""What a store does wrong is tried again, or told in one line; never read as something else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.disk import objects, paths
from logstore.disk.directory import list_data_directory
from logstore.disk.file_range import FileRange
from logstore.disk.files import read_file
from logstore.disk.loaded import LoadedFile
from logstore.disk.object_file import PIECE_SIZE
from logstore.disk.paths import url_matches
from logstore.disk.system_errors import nio_error
from logstore.errors import DataDirectoryError
from logstore_tools.commands import logstore
from tests.conformance.dumping import answer
from tests.support.golden import Golden
from tests.support.object_store import ObjectStore, Request

LOG = "orders-0/00000000000000000000.log"


def _each_first(fault: str, seen: Counter[str]) -> Callable[[Request], str | None]:
    def before(request: Request) -> str | None:
        key = f"{request.key}?{request.query}"
        seen[key] += request.method == "GET"
        return fault if seen[key] == 1 and request.method == "GET" else None

    return before


@pytest.mark.parametrize("fault", ["busy", "cut", "slow"])
def test_what_passes_is_tried_again(fault: str, store: ObjectStore, demo: str, golden: Golden) -> None:
    local, seen = str(golden("demo")), Counter[str]()
    store.faults.before = _each_first(fault, seen)
    expected, found = (answer([f"{place}/orders-0"]) for place in (local, demo))
    assert (found[0], found[1].replace(demo, local), found[2]) == expected
    assert len(seen) > 4


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("busy", "SlowDown: Please reduce your request rate., after 1 retries"),
        ("cut", "in 4 tries"),
    ],
)
def test_what_does_not_pass_is_told_with_its_reason(
    fault: str, reason: str, store: ObjectStore, demo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(objects.RETRIES, "max_retries", 1)
    objects.forget_all()
    store.faults.before = lambda request: fault if request.key.endswith(".log") and request.method == "GET" else None
    result = CliRunner().invoke(logstore, ["verify", f"{demo}/orders-0"])
    assert result.exit_code in (1, 3)
    assert reason in result.output
    assert "Traceback" not in result.output
    objects.forget_all()


def test_a_server_that_ignores_ranges_is_told(store: ObjectStore) -> None:
    store.put("ranges/x", bytes(1000))
    store.faults.before = lambda request: "no-range"
    with FileRange("s3://logs/ranges/x") as file:
        assert file.read(0, 1000).size == 1000
        with pytest.raises(DataDirectoryError, match="range"):
            file.read(10, 10)


def test_empty_objects_that_mark_folders_are_no_files(store: ObjectStore, golden: Golden) -> None:
    url = store.put_all(golden("demo"), "folders/demo")
    before = paths.scan(f"{url}/orders-0"), list_data_directory(url)
    for folder in ("folders/demo/orders-0/", "folders/demo/"):  # as consoles make them
        store.put(folder, b"")
        assert (paths.scan(f"{url}/orders-0"), list_data_directory(url)) == before


@pytest.mark.parametrize("prefix", ["~user", "100%", "a%20b", "a#b", "br[1]", "q?x", "a+b c", "ü/é", "curly{1}*"])
def test_an_object_is_read_by_the_name_that_its_url_has(prefix: str, store: ObjectStore) -> None:
    store.put(f"{prefix}/x", b"content")
    assert [entry.path for entry in paths.scan(f"s3://logs/{prefix}")] == [f"s3://logs/{prefix}/x"]
    assert read_file(f"s3://logs/{prefix}/x") == b"content"


def test_listings_come_in_pages(store: ObjectStore, demo: str, golden: Golden) -> None:
    store.faults.page_size = 3
    local = str(golden("demo"))
    results = [CliRunner().invoke(logstore, ["segments", place, "--format", "csv"]) for place in (local, demo)]
    assert results[1].stdout.replace(demo, local) == results[0].stdout
    assert sum("continuation-token" in request.query for request in store.requests) > 5


@pytest.mark.parametrize("keeps_conditions", [True, False])
def test_an_object_that_is_replaced_is_an_error_with_both_etags(keeps_conditions: bool, store: ObjectStore) -> None:
    store.faults.keeps_conditions = keeps_conditions
    store.put("replaced/x", b"before" * 100)
    file = FileRange("s3://logs/replaced/x")
    assert file.object is not None
    before = file.object.etag
    assert file.read(0, 6).tobytes() == b"before"
    store.put("replaced/x", b"behind" * 100)
    with pytest.raises(DataDirectoryError, match="The object was replaced since it was listed") as caught:
        file.read(6, 6)
    with FileRange("s3://logs/replaced/x") as again:
        assert again.object is not None
        assert (caught.value.expected, caught.value.found) == (f"ETag {before}", f"ETag {again.object.etag}")


def test_an_object_that_goes_away_is_told(store: ObjectStore) -> None:
    store.put("gone/x", bytes(100))
    file = FileRange("s3://logs/gone/x")
    store.remove("gone/x")
    with pytest.raises(DataDirectoryError, match="There is no such object; at s3://logs/gone/x"):
        file.read(0, 10)


@pytest.mark.parametrize("verb", ["topics", "verify", "dump"])
def test_wrong_credentials_are_told_in_the_words_of_the_store(
    verb: str, store: ObjectStore, demo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    objects.forget_all()
    output = _output_of(verb, demo)
    assert "The store refuses to read; at s3://logs/demo; found " in output
    assert "look at the bucket, the endpoint, the region and the credentials" in output
    objects.forget_all()


@pytest.mark.parametrize("verb", ["topics", "verify", "dump"])
def test_a_wrong_bucket_is_named(verb: str, store: ObjectStore) -> None:
    output = _output_of(verb, "s3://nobodys/data")
    assert "at s3://nobodys/data; found NoSuchBucket: The specified bucket does not exist" in output


def test_a_pattern_in_a_wrong_bucket_is_told(store: ObjectStore) -> None:
    with pytest.raises(DataDirectoryError, match="at s3://nobodys; found NoSuchBucket"):
        url_matches("s3://nobodys/data*")


@pytest.mark.parametrize("url", ["hdfs://name/data", "ftp://host/data"])
@pytest.mark.parametrize("verb", ["topics", "verify", "dump"])
def test_another_scheme_is_refused_in_one_line(verb: str, url: str) -> None:
    output = _output_of(verb, url, code=2)
    assert f"{url.partition(':')[0]}:// is not read; at {url}" in output


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("s3n://bucket/data", "write s3:// instead"),
        ("gcs://bucket/data", "write gs:// instead"),
        ("wasbs://c@a.blob.core.windows.net/data", "write abfss://container@account.dfs.core.windows.net/…"),
        (f"https://bucket.s3.amazonaws.com/data/{LOG}?X-Amz-Signature=x", "download it, or name the store's own URL"),
    ],
)
@pytest.mark.parametrize("verb", ["topics", "dump"])
def test_another_name_of_a_store_is_refused_with_the_one_to_write(verb: str, url: str, advice: str) -> None:
    assert advice in _output_of(verb, url, code=2)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("Error performing PUT http://169.254.169.254/latest/api/token in 42ms", "profiles in ~/.aws are not read"),
        (
            "<Error><Code>InvalidObjectState</Code><Message>Not valid for its class</Message></Error>",
            "restore it first",
        ),
        ("403 Forbidden", "look at the bucket, the endpoint, the region and the credentials"),
    ],
)
def test_the_reason_of_a_store_decides_what_to_do(reason: str, advice: str, store: ObjectStore) -> None:
    def refused(_store: object, _key: str) -> None:
        raise ValueError(reason)

    with pytest.raises(OSError, match=r".") as caught:
        objects.call(refused, "s3://logs/demo")
    assert advice in str(nio_error(caught.value, "s3://logs/demo"))


def test_a_bucket_is_a_directory_with_a_slash_too(store: ObjectStore, demo: str) -> None:
    for url in ("s3://logs/", "s3://logs", "s3://logs/"):  # not listed before, and listed
        assert paths.is_directory(url)
        assert "demo" in [entry.name for entry in paths.scan(url)]


def _output_of(verb: str, url: str, code: int = 3) -> str:
    if verb == "dump":
        found = answer([url])
        assert found[0] in (1, code)
        assert found[2].count("\n") == 1
        return found[2]
    result = CliRunner().invoke(logstore, [verb, url])
    assert result.exit_code == code, result.output
    return result.output


def test_a_child_of_a_fork_is_refused(store: ObjectStore, demo: str) -> None:
    program = f"""
import os, sys
from logstore.disk.files import read_file
from logstore.errors import UsageError
read_file("{demo}/meta.properties")
child = os.fork()
if not child:
    try:
        read_file("{demo}/meta.properties")
    except UsageError as error:
        os._exit(7 if "forked" in str(error) else 8)
    os._exit(9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 7


@pytest.mark.parametrize("unanswered", [b"HEAD", b"GET"])
def test_an_interrupt_waits_for_no_server(unanswered: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/{LOG}"
        words = [sys.executable, "-m", "logstore", "dump", url]
        with subprocess.Popen(words, stderr=subprocess.PIPE) as program:
            while not (connection := server.accept()[0]).recv(1 << 16).startswith(unanswered):
                modified = b"Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT"
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n%b\r\n\r\n" % modified)
                connection.close()
            program.send_signal(signal.SIGINT)
            assert program.communicate(timeout=30)[1] == b"logstore: interrupted\n"
            connection.close()


def test_a_web_server_is_read_file_by_file(store: ObjectStore, golden: Golden) -> None:
    import threading
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    handler = partial(SimpleHTTPRequestHandler, directory=str(golden("demo")))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        local = str(golden("demo"))
        expected, found = (answer([f"{place}/{LOG}"]) for place in (local, url))
        server.shutdown()
    assert (found[0], found[1].replace(url, local), found[2]) == expected


@pytest.mark.parametrize("size", [0, 1, PIECE_SIZE, 3 * PIECE_SIZE + 1])
def test_a_file_is_loaded_whole_whatever_its_size(size: int, store: ObjectStore) -> None:
    content = os.urandom(size)
    store.put("sizes/x", content)
    step = 1_000_003
    with store.counted() as requests, LoadedFile("s3://logs/sizes/x") as file:
        read = b""
        for start in range(0, size, step):
            file.load(start, start + step)
            read += file.data[start : start + step].tobytes()
            file.release(start, start + step)
    assert read == content
    assert sum(request.size for request in requests) == size
    with FileRange("s3://logs/sizes/x") as whole:
        assert whole.read(0, size).tobytes() == content


def test_obstore_that_is_missing_is_told(tmp_path: Path) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('no obstore')")
    program = "import sys; from logstore_tools.main import main; sys.argv = ['logstore', 'topics', 's3://b/x']; main()"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "Reading URLs needs obstore; pip install 'logstore-kafka[objects]'" in result.stderr

"""What is asked of the dump tool about each golden directory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

LARGE_BYTES = 30_000
MANY_SMALL_LOGS = ("streams", "edges", "random")
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "bootstrap.checkpoint": "--cluster-metadata-decoder",
    "offsets-decoder": "--offsets-decoder",
    "transaction-log-decoder": "--transaction-log-decoder",
    "cluster-metadata-decoder": "--cluster-metadata-decoder",
    "share-group-state-decoder": "--share-group-state-decoder",
    "remote-log-metadata-decoder": "--remote-log-metadata-decoder",
}
API = "org.apache.kafka.tools.api."
LOG_OPTIONS = (
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--skip-record-metadata", "--deep-iteration"],
)
# one of these for each log, in turn
ODD_LOG_OPTIONS = (
    ["--offsets-decoder"],
    ["--transaction-log-decoder"],
    ["--cluster-metadata-decoder"],
    ["--share-group-state-decoder", "--skip-record-metadata"],
    ["--remote-log-metadata-decoder"],
    ["--value-decoder-class", f"{API}DefaultDecoder"],
    ["--key-decoder-class", f"{API}DefaultDecoder", "--value-decoder-class", f"{API}IntegerDecoder"],
    [f"--value-decoder-class={API}LongDecoder"],
    [f"--key-decoder-class={API}IntegerDecoder"],
    ["--value-decoder-class", f"{API}ByteDecoder"],
    ["--key-decoder-class", f"{API}StringDecoder", "--skip-record-metadata"],
    ["--value-decoder-class"],
    ["--key-decoder-class", "no.such.Decoder"],
    ["--offsets-decoder", "--transaction-log-decoder", "--cluster-metadata-decoder"],
    ["--cluster-metadata-decoder", "--skip-record-metadata"],
    ["--verify-index-only", "--index-sanity-check", "--max-message-size", "1"],
)
INDEX_OPTIONS = (
    ["--verify-index-only"],
    ["--index-sanity-check"],
    ["--verify-index-only", "--index-sanity-check", "--print-data-log"],
    ["--max-message-size", "100"],
    ["--max-message-size=0", "--verify-index-only"],
)
WRONG_CALLS = (
    [],
    ["--help"],
    ["--version"],
    ["--help", "--version", "--files", "x.log"],
    ["--files"],
    ["--files", ""],
    ["--files", ","],
    ["--files", ",,x.log"],
    ["--files", "no-such-file.log"],
    ["--files", "no-such-file.index"],
    ["--files", "00000000000000000000.timeindex"],
    ["--files", "00000000000000000000.snapshot"],
    ["--files", "00000000000000000000.txnindex"],
    ["--files", "no-such-file.txnindex"],
    ["--files", "1.checkpoint"],
    ["--files", "noextension,x.unknown,.log"],
    ["--files", "meta.properties,recovery-point-offset-checkpoint,orders-0/partition.metadata"],
    ["--files", "orders-0,."],
    ["--file", "x.log"],
    ["-files", "x.log"],
    ["files", "x.log"],
    ["--files", "x.unknown", "stray", "words"],
    ["--files=x.unknown"],
    ["--files="],
    ["--files=x.unknown", "--files", "y.unknown"],
    ["--print-data-log"],
    ["--print-data-log", "--print-data-log", "--files", "x.unknown"],
    ["--print-data-log=true", "--files", "x.unknown"],
    ["--nonsense", "--files", "x.unknown"],
    ["--files", "x.unknown", "--max-bytes"],
    ["--files", "x.unknown", "--max-bytes", "many"],
    ["--files", "x.unknown", "--max-bytes", "2147483648"],
    ["--files", "x.unknown", "--max-bytes", "-1"],
    ["--files", "x.unknown", "--max-bytes", "0x10"],
    ["--files", "x.unknown", "--max-bytes", "1", "--max-bytes", "2"],
    ["--files", "x.unknown", "--max-message-size", "+5"],
    ["--files", "x.unknown", "--max-message-size", ""],
    ["--files", "x.unknown", "--max-message-size", "1.5"],
    ["--files", "x.unknown", "--value-decoder-class", "no.such.Decoder"],
    ["--files", "x.unknown", "--value-decoder-class", "java.lang.String"],
    ["--files", "x.unknown", "--key-decoder-class="],
    ["--files", "x.unknown", "--"],
    ["--files", "x.unknown", "--", "--nonsense"],
    ["--", "--files", "x.unknown"],
    ["-"],
    ["--files", "--print-data-log"],
    ["--files", "-x"],
    ["--files", "x.unknown", "-p"],
    ["--files", "x.unknown", "-pq"],
    ["--files", "x.unknown", "--ünknown"],
    ["--files", " x.unknown , y.unknown "],
    ["--files", "x.unknown", "y.unknown", "--deep-iteration"],
)


def argvs_of(name: str, directory: Path) -> list[list[str]]:
    """All calls about the golden directory `name`, to be made inside it."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    turn = itertools.cycle(ODD_LOG_OPTIONS)
    if name in MANY_SMALL_LOGS:
        logs = [str(path.relative_to(directory)) for path in files]
        return [["--files", log, *options] for log in logs for options in ([], ["--print-data-log"], next(turn))]
    argvs = [argv for path in files for argv in _about_file(path, str(path.relative_to(directory)), turn)]
    for partition in sorted({path.parent for path in files}):
        argvs += _about_partition(directory, partition)
    if name == "demo":
        argvs += map(list, WRONG_CALLS)
    return argvs


def _about_file(path: Path, relative: str, turn: Iterator[list[str]]) -> Iterator[list[str]]:
    files = ["--files", relative]
    yield files
    if path.suffix in (".log", ".checkpoint"):
        yield from _about_log(path, files, turn)
    if path.suffix in (".index", ".timeindex"):
        yield from ([*files, *options] for options in INDEX_OPTIONS)
    if path.suffix in (".txnindex", ".snapshot"):
        yield [*files, "--print-data-log", "--index-sanity-check"]


def decoder_of(path: Path) -> str | None:
    """The option that reads the records of this log, if it is one of an internal topic."""
    names = [path.name, path.parent.name, path.parent.name.rsplit("-", 1)[0]]
    return next((DECODERS[name] for name in names if name in DECODERS), None)


def _about_log(path: Path, files: list[str], turn: Iterator[list[str]]) -> Iterator[list[str]]:
    decoder = decoder_of(path)
    size = path.stat().st_size
    if decoder is not None:
        yield [decoder, *files]
    if size > LARGE_BYTES:
        yield ([*files, "--print-data-log"] if decoder is None else [*files, "--max-bytes", "9999", "--print-data-log"])
        yield [*files, "--max-bytes", "10000", *next(turn)]
        return
    yield from ([*files, *options] for options in LOG_OPTIONS)
    yield [*next(turn), *files]
    for limit in sorted({0, 1, 17, 61, size // 3, size // 2 + 7, max(size - 1, 0), size, size + 1}):
        yield [*files, f"--max-bytes={limit}", "--deep-iteration"]
    yield ["--max-bytes", "-1", *files]


def _about_partition(directory: Path, partition: Path) -> Iterator[list[str]]:
    names = [str(path.relative_to(directory)) for path in sorted(partition.iterdir()) if path.is_file()]
    logs = [name for name in names if name.endswith(".log")]
    if sum((directory / name).stat().st_size for name in names) > 4 * LARGE_BYTES:
        names = [name for name in names if not name.endswith(".log")]
    yield ["--files", ",".join(names)]
    yield ["--files", ",".join(reversed(names)), "--print-data-log", "--verify-index-only"]
    if logs:
        yield ["--files", ",".join([logs[-1], "missing/0.log", logs[0]])]
        yield [
            "--files",
            ",".join([f"./{logs[0]}", str(Path("..", directory.name, logs[0])), f"{partition.name}//x"]),
        ]
        yield ["--files", f"{logs[0]},{logs[0]},{logs[0]}", "--max-bytes", "200", "--deep-iteration"]

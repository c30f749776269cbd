"""What `make bench` found: the tables of the page of benchmarks, the picture of growth, and six rows in the README.

All are made of `docs/explanation/benchmarks.json`, where `make bench-docs` keeps a run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.support.pictures import drawn, growth
from benchmarks.support.report import absent_list, circumstances, markdown_table, read_results, result_tables

_ROOT = Path(__file__).parents[2]
_KEPT = _ROOT / "docs" / "explanation" / "benchmarks.json"
_BEGIN, _END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
_SUMMARY = (  # rows of the README: a benchmark, and the peer beside it
    ("dump::test_dump_command[--print-data-log]", "kafka-dump-log"),
    ("transactions::test_transaction[10]", "broker"),
    ("read::test_decode_segment[one thread]", "Kafka"),
    ("recover::test_recover_crashed_log[two threads]", "Kafka"),
    ("append::test_append_records[10]", "Kafka"),
    ("spark::test_sum_of_lengths[100]", "Spark's Kafka source"),
)
_PEERS = {"kafka-dump-log": "Kafka's dump tool", "broker": "a local broker and the Java client", "Kafka": "Kafka's log"}
_GROWN = {  # a picture and a line of the benchmarks, to the line here
    ("partitions of a store", "open after a clean"): "open a store, by partitions",
    ("open transactions", "transaction, marker, LSO"): "transaction, by open ones",
    ("segments", "fetch"): "fetch, by segments",
    ("producers", "append"): "append, by producers",
    ("open transactions", "LSO"): "stable offset, by open ones",
}


def pages() -> dict[Path, Callable[[], str]]:
    """Return the text of each page that shows figures, by its path."""
    page, readme = _ROOT / "docs" / "explanation" / "benchmarks.md", _ROOT / "README.md"
    return {
        page: partial(filled, page, _tables),
        readme: partial(filled, readme, summary),
        _ROOT / "docs" / "pictures" / "growth.svg": _growth,
    }


def filled(page: Path, made: Callable[[], str]) -> str:
    """Return a page with other text between its markers.

    Raises:
        ValueError: it has not one of each.
    """
    before, begin, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"{page} has no lines {_BEGIN} and {_END}")
    return f"{before}{begin}\n\n{made()}\n\n{end}{after}"


def _tables() -> str:
    measurements = read_results(_KEPT)
    absent = absent_list(measurements)
    parts = [circumstances(_KEPT), result_tables(measurements)]
    return "\n\n".join([*parts, *(["Peers that did not run:", absent] if absent else [])])


def summary(results: Path = _KEPT) -> str:
    """Return what the README shows.

    Raises:
        KeyError: a row of it was not measured beside its peer.
    """
    found = {each.identity: each for each in read_results(results)}
    rows = [
        [found[identity].title, _PEERS.get(peer, peer), str(found[identity].peers[peer])] for identity, peer in _SUMMARY
    ]
    return f"{circumstances(results)}\n\n{markdown_table(['what', 'beside', 'faster by'], rows)}"


def _growth() -> str:
    pictures = growth(read_results(_KEPT))
    lines = {name: pictures[picture][series] for (picture, series), name in _GROWN.items()}
    sizes = "partitions, open transactions, segments or producers"
    return drawn("Time of one call against what is there already", sizes, lines)

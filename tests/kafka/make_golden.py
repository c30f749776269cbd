"""Makes the golden directories anew, with real brokers, real clients and Kafka's own record classes.

Run by hand, from the root of the repository: `python -m tests.kafka.make_golden [NAME…]` (all by default). Each
name gets `tests/golden/NAME.tar.xz` and the real tool's answers in `tests/golden/NAME.dump.jsonl.xz`; `demo` is
stored unpacked, as `demo/`. The hashes in `tests/golden/PROVENANCE.md` are written anew as well.
"""

from __future__ import annotations

import argparse
import re
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from logstore.config.kafka_version import NEWEST
from tests.golden.archive import NAMES, answers, store, unpack, write_rows
from tests.golden.matrix import argvs_of
from tests.golden.provenance import write_hashes
from tests.kafka.hand_written import write_edges, write_random_segments, write_streams
from tests.support.broker import Broker
from tests.support.oracle import FIRST, Oracle

NOT_KEPT = (".lock", "__cluster_metadata-0/quorum-state.tmp")


@dataclass(frozen=True)
class Recipe:
    """How a directory comes to be: which Java class runs, on which broker (if any), and how the broker ends."""

    main_class: str
    arguments: tuple[str, ...] = ()
    broker: bool = True
    settings: dict[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    release: str = FIRST
    #: beside the broker a controller 2 was there, which is no voter
    was_observed: bool = False


RECIPES = {
    "demo": Recipe("GoldenTransactions", ("demo",)),
    "records": Recipe("GoldenRecords"),
    "transactions": Recipe("GoldenTransactions"),
    "transactions-v1": Recipe("GoldenTransactions", features=("transaction.version=1",)),
    "transactions-v0": Recipe("GoldenTransactions", features=("transaction.version=0",)),
    "killed": Recipe("GoldenTransactions", stop_signal=signal.SIGKILL),
    "compacted": Recipe("GoldenCompacted", ("{directory}",), settings={"log.cleaner.backoff.ms": "100"}),
    "groups": Recipe("GoldenGroups"),
    "cluster": Recipe(
        "GoldenCluster",
        settings={
            "metadata.log.max.record.bytes.between.snapshots": "1500",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    ),
    "newest": Recipe(
        "GoldenNewest",
        settings={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "group.streams.topology.description.plugin.class": "GoldenNewest$Descriptions",
            "group.streams.initial.rebalance.delay.ms": "0",
        },
        release=NEWEST.release,
        was_observed=True,
    ),
    "legacy": Recipe("GoldenLegacy", broker=False),
    "control": Recipe("GoldenControl", broker=False),
    "schemas": Recipe("GoldenSchemas", broker=False),
}

HAND_WRITTEN = {"streams": write_streams, "edges": write_edges, "random": write_random_segments}


def make(oracle: Oracle, name: str, workshop: Path) -> Path:
    """The data directory `name`, as its recipe leaves it, in `workshop`."""
    directory = workshop / name
    if name in HAND_WRITTEN:
        HAND_WRITTEN[name](directory)
        return directory
    recipe = RECIPES[name]
    if not recipe.broker:
        directory.mkdir()
        oracle.run(recipe.main_class, str(directory), cwd=workshop)
        return directory
    oracle = oracle if recipe.release == FIRST else Oracle(recipe.release)
    broker = Broker(oracle, directory, recipe.settings, list(recipe.features))
    arguments = [argument.format(directory=directory) for argument in recipe.arguments]
    with broker.running(recipe.stop_signal) as bootstrap:
        if recipe.was_observed:
            let_observe(broker, workshop / "observer")
        oracle.run(recipe.main_class, bootstrap, *arguments, cwd=workshop)
    for unwanted in NOT_KEPT:
        (directory / unwanted).unlink(missing_ok=True)
    return directory


def let_observe(broker: Broker, directory: Path) -> None:
    """Start a controller that is no voter, which registers itself, and stop it."""
    settings = {"process.roles": "controller", "node.id": "2", **broker.quorum}
    observer = Broker(broker.oracle, directory, settings, [], is_formatted=True)
    text = observer.config.read_text()
    observer.config.write_text(re.sub("listeners=PLAINTEXT://[^,]*,", "listeners=", text))
    observer.format("--no-initial-controllers")
    with observer.running(signal.SIGTERM):
        pass


def record_dumps(oracle: Oracle, name: str, directory: Path) -> None:
    """Asks the real tool everything in the matrix about `directory`."""
    before = contents(directory)
    dumps = oracle.dump(directory, argvs_of(name, directory))
    if contents(directory) != before:
        raise RuntimeError(f"the real tool changed {name}: an answer may depend on the one before")
    write_rows(answers(name), [vars(dump) for dump in dumps])


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    parser.add_argument("--dumps-only", action="store_true", help="ask again about the directories as they are stored")
    options = parser.parse_args(argv)
    oracle = Oracle()
    for name in options.names:
        with tempfile.TemporaryDirectory() as workshop, tempfile.TemporaryDirectory() as place:
            if not options.dumps_only:
                store(make(oracle, name, Path(workshop)), name)
            record_dumps(oracle, name, unpack(name, Path(place)))
    write_hashes()


if __name__ == "__main__":
    main()

"""Files that a broker reads before its metadata log, and does not start without (`BootstrapDirectory`, KIP-595)."""

from __future__ import annotations

from collections.abc import Iterator

from ...config.kafka_version import METADATA_VERSION
from ...disk.directory import DataDirectoryFiles
from ...disk.loaded import LoadedFile
from ...errors import LogstoreError
from ...layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, METADATA_TOPIC, DirectoryKind
from ...replay.internal_topic import ReplayedRecord, replayed_rows
from ...replay.metadata_image import MetadataImage
from ...view.walk import Damage, walk
from ..finding import Breach, Where

RULE = "startup-file"


def startup_breaches(directory: DataDirectoryFiles) -> Iterator[Breach]:
    """Yield what is wrong with bootstrap records, and with the start of the metadata log."""
    logs = [one for one in directory.partitions if one.topic == METADATA_TOPIC and one.kind is DirectoryKind.LIVE]
    for start, log in [(one.segments[0].base_offset, one) for one in logs if one.segments]:
        reached = max((offset for offset, _ in log.kraft_snapshots), default=0)
        if reached < start:
            expected = f"a snapshot of offset {start} or later, where the log begins"
            yield Breach(RULE, (Where(log.path, *log.key, offset=start), expected, reached or "none"))
    # Kafka 4.4 formats a directory with the records in a snapshot of the empty log
    snapshots = [log.kraft_snapshots[0, 0] for log in logs if (0, 0) in log.kraft_snapshots and not log.segments]
    for path in [*filter(None, (directory.files.get(BOOTSTRAP_SNAPSHOT_NAME),)), *snapshots]:
        try:
            yield from _of_bootstrap(path, is_snapshot=path in snapshots)
        except LogstoreError as error:
            yield Breach.of(RULE, Where(path), error, "metadata records")


def _of_bootstrap(path: str, *, is_snapshot: bool) -> Iterator[Breach]:
    """Yield what is wrong with bootstrap records; a snapshot need not have any, and its damage is told elsewhere."""
    image, count = MetadataImage(), 0
    with LoadedFile(path) as log:
        for piece in walk(log, 0):
            if isinstance(piece, Damage):
                if not is_snapshot:
                    yield Breach(RULE, (Where(path, position=piece.start), piece.expected, piece.found))
                return
            for item in replayed_rows(*piece):
                if isinstance(item, LogstoreError):
                    raise item
                if isinstance(item, ReplayedRecord):
                    image.replay(item.value, item.offset, item.timestamp)
                    count += 1
    if METADATA_VERSION not in image.features and not (is_snapshot and not count):
        yield Breach(RULE, (Where(path), f"a record with the level of {METADATA_VERSION}", "none"))

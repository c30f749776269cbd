"""`logstore topics`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from .audit_options import directory_argument, exit_code_of, form_option, print_objects, told_errors

if TYPE_CHECKING:
    from logstore.audit.cluster_log import Topic
    from logstore.audit.partition import Partition

_COLUMNS = ("topic", "topic id", "partitions here", "of all", "segments", "bytes", "configuration")


@click.command("topics")
@directory_argument
@form_option
def command(directory: str, form: str) -> None:
    """List the topics of a data DIRECTORY: ids, partitions, sizes, and what was configured.

    Ids and configurations are of `__cluster_metadata`; without it the ids are those of `partition.metadata`.
    """
    from logstore.audit.evidence import Cluster
    from logstore.audit.partition import open_partitions

    from .paths import data_directory

    with told_errors():
        partitions = open_partitions(data_directory(directory))
        cluster = Cluster(directory)
        topics = list(_topics(partitions, {} if cluster.topics is None else cluster.topics.by_name))
        code = exit_code_of(directory, cluster.findings)
    print_objects(topics, form, _COLUMNS, _cells)
    sys.exit(code)


def _cells(topic: dict[str, Any]) -> tuple[Any, ...]:
    config = " ".join(f"{name}={value}" for name, value in sorted(topic["config"].items())) or None
    return tuple((topic | {"config": config, "partitions": len(topic["partitions"])}).values())


def _topics(partitions: list[Partition], known: dict[str, Topic]) -> Iterator[dict[str, Any]]:
    from logstore.audit.partition import unless_gone
    from logstore.disk.mapped import segment_size
    from logstore.disk.side_files import read_partition_metadata
    from logstore.layout.partition_metadata import FILE_NAME

    by_topic: dict[str, list[Partition]] = {name: [] for name in known}
    for partition in partitions:
        by_topic.setdefault(partition.files.topic, []).append(partition)
    for name, found in sorted(by_topic.items()):
        topic = known.get(name)
        paths = [path for one in found if (path := one.files.files.get(FILE_NAME)) is not None]
        local_id = read_partition_metadata(paths[0]).topic_id if paths else None
        logs = [segment.log for one in found for segment in one.files.segments]
        yield {
            "topic": name,
            "topicId": local_id if topic is None else topic.topic_id,
            "partitions": [one.files.partition for one in found],
            "partitionCount": None if topic is None else len(topic.partitions),
            "segments": len(logs),
            "bytes": sum(unless_gone(segment_size, log) or 0 for log in logs),
            "config": {} if topic is None else topic.config,
        }

"""Producer ids: blocks of 1000, of which each belongs to one process."""

from __future__ import annotations

from pathlib import Path

import pytest

import logstore
from logstore.errors import IllegalTransitionError, SchemaError
from logstore.replay.metadata_image import MetadataImage
from logstore.topics.cluster_metadata import encode_value


def test_no_producer_id_is_given_twice_whatever_restarts(tmp_path: Path) -> None:
    given: list[int] = []
    for count in (0, 3, 1000, 1001, 1):
        with logstore.open(tmp_path) as store:
            given += [store.next_producer_id() for _ in range(count)]
    blocks = (range(3), range(1000, 2000), range(2000, 3001), range(4000, 4001))
    assert given == [number for block in blocks for number in block]


def test_the_ids_end_somewhere(tmp_path: Path) -> None:
    with (
        logstore.open(tmp_path) as store,
        pytest.raises(IllegalTransitionError, match="Exhausted all producerIds"),
    ):
        store.directory._metadata.skip_producer_ids(2**63 - 1)


def test_blocks_never_go_back() -> None:
    image, fields = MetadataImage(), {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": 5000}
    image.replay(encode_value("ProducerIdsRecord", fields), 0)
    with pytest.raises(SchemaError, match="is not greater than current"):
        image.replay(encode_value("ProducerIdsRecord", fields), 1)
    assert image.next_producer_id == 5000

"""Directories as `kafka-storage format` of Kafka 4.4 leaves them."""

from __future__ import annotations

from pathlib import Path

from logstore.store.metadata.batches import dynamic_quorum, snapshot_bytes, voter_fields
from logstore.topics.cluster_metadata import encode_value

DIRECTORY_ID = "wpbL9QuzSw6JQCrXAbQsfg"
SECRET = {"salt": b"s", "storedKey": b"k", "serverKey": b"k", "iterations": 4096}
USER = encode_value("UserScramCredentialRecord", {"name": "alice", "mechanism": 1, **SECRET})


def level(name: str, number: int) -> bytes:
    return encode_value("FeatureLevelRecord", {"name": name, "featureLevel": number})


def formatted(root: Path, *records: bytes, is_dynamic: bool = False) -> Path:
    """A new directory with these bootstrap records; with a dynamic quorum as by `--standalone`."""
    metadata = root / "__cluster_metadata-0"
    metadata.mkdir(parents=True)
    ids = f"version=1\ncluster.id=c\nnode.id=1\ndirectory.id={DIRECTORY_ID}\n"
    (root / "meta.properties").write_text(ids)
    quorum = dynamic_quorum(voter_fields(1, DIRECTORY_ID)) if is_dynamic else []
    (metadata / f"{0:020d}-{0:010d}.checkpoint").write_bytes(snapshot_bytes(quorum, records, 0, 0))
    return root

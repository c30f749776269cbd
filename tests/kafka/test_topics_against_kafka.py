"""Records of internal topics: our tables against the definitions in Kafka's jars, our text against the real tool's."""

from __future__ import annotations

import os
import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.errors import LogstoreError
from logstore.messages import schema
from logstore.topics import family
from logstore_tools.dump.decoders import control_record_text, decoder, parsers
from tests.naive import topics as naive
from tests.support.judges import judged
from tests.support.oracle import Dump, Oracle

pytestmark = [pytest.mark.kafka, pytest.mark.by_release]

#: table: the jar that has its definitions
JARS = {
    "consumer_offsets": "kafka-group-coordinator",
    "transaction_state": "kafka-transaction-coordinator",
    "share_group_state": "kafka-share-coordinator",
    "cluster_metadata": "kafka-metadata",
    "remote_log_metadata": "kafka-storage",
    "control_records": "kafka-clients",
    "consumer_protocol": "kafka-clients",
}
#: parser: its table and the option of the real tool
DECODERS = {
    "offsets": ("consumer_offsets", "--offsets-decoder"),
    "transaction": ("transaction_state", "--transaction-log-decoder"),
    "share-group-state": ("share_group_state", "--share-group-state-decoder"),
    "cluster-metadata": ("cluster_metadata", "--cluster-metadata-decoder"),
    "remote-log-metadata": ("remote_log_metadata", "--remote-log-metadata-decoder"),
}
LOG = "00000000000000000000.log"
ARRAY = re.compile(r"\[B@[0-9a-f]+")
SEED = 431
#: values of one type and version, changed copies of one of them
VALUES, CHANGES = 6, 12


@pytest.fixture(scope="module")
def definitions(oracle: Oracle) -> dict[str, dict[str, naive.Definition]]:
    """Every definition in the jars that the tables come from: jar, then name."""
    found: dict[str, dict[str, naive.Definition]] = {}
    for path in map(Path, oracle.classpath.split(os.pathsep)):
        jar = path.name.rsplit("-", 1)[0]
        if jar in JARS.values():
            found[jar] = {one["name"]: one for one in map(naive.definition_of, _json_texts(path))}
    return found


def _json_texts(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if "/" in name and name.endswith(".json") and Path(name).parent.name in ("message", "metadata"):
                yield jar.read(name).decode()


@pytest.mark.parametrize("table", JARS)
def test_tables_state_what_the_jars_define(table: str, definitions: dict[str, dict[str, naive.Definition]]) -> None:
    messages = family(table, judged()).values()
    assert messages
    for message in messages:
        definition = definitions[JARS[table]][message.name]
        low, high = naive.bounds(definition["validVersions"])
        assert (message.record_type, message.versions) == (definition.get("apiKey"), schema.Versions(low, high))
        flexible = definition["flexibleVersions"]
        assert message.flexible == (None if flexible == "none" else naive.bounds(flexible)[0]), message.name
        _assert_same_fields(message.root, definition["fields"], definition, high)


def _assert_same_fields(
    struct: schema.StructSpec, fields: list[naive.Definition], definition: naive.Definition, highest: int
) -> None:
    assert len(struct.fields) == len(fields), struct.name
    for ours, theirs in zip(struct.fields, fields, strict=True):
        where = f"{definition['name']}.{theirs['name']}"
        kind = theirs["type"].strip()
        assert ours.name == theirs["name"][0].lower() + theirs["name"][1:], where
        assert (ours.kind, ours.is_array) == (kind.removeprefix("[]"), kind.startswith("[]")), where
        versions = theirs.get("versions", theirs.get("taggedVersions"))
        assert ours.versions == schema.Versions(*naive.bounds(versions, highest)), where
        assert theirs.get("nullableVersions", versions).strip() == versions.strip(), where
        assert ours.is_nullable == ("nullableVersions" in theirs), where
        assert theirs.get("taggedVersions", versions).strip() == versions.strip(), where
        assert (ours.tag, ours.is_ignorable) == (theirs.get("tag"), theirs.get("ignorable", False)), where
        inner = naive.struct_fields(definition, theirs)
        assert (ours.struct is not None) == (inner is not None), where
        if ours.struct is not None and inner is not None:
            assert (ours.struct.versions is None) == ("fields" not in theirs), where
            _assert_same_fields(ours.struct, inner, definition, highest)
        else:
            assert ours.default == _default(theirs, kind), where


def _default(field: naive.Definition, kind: str) -> object:
    written = field.get("default")
    if written == "null":
        return None
    if kind.startswith("[]"):
        return []
    empty: dict[str, object] = {"string": "", "bytes": b"", "uuid": "A" * 22, "bool": False, "float64": 0.0}
    if written is None:
        return empty.get(kind, 0)
    return written == "true" if kind == "bool" else int(written)


@pytest.mark.parametrize(
    "table", ["consumer_offsets", "transaction_state", "share_group_state", "cluster_metadata", "remote_log_metadata"]
)
def test_no_record_type_is_missing(table: str, definitions: dict[str, dict[str, naive.Definition]]) -> None:
    types = ("metadata", "coordinator-key", "coordinator-value")
    theirs = {name for name, one in definitions[JARS[table]].items() if one["type"] in types}
    assert theirs == set(family(table, judged()))


Pairs = list[tuple[bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def printed(
    oracle: Oracle,
    definitions: dict[str, dict[str, naive.Definition]],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, tuple[Pairs, Dump]]:
    """Records for each parser, and what the real tool printed of them, all in one JVM."""
    place = tmp_path_factory.mktemp("printed")
    pairs: dict[str, Pairs] = {}
    for parser, (table, _) in DECODERS.items():
        found = _pairs(random.Random(SEED), table, definitions[JARS[table]], definitions["kafka-clients"])
        pairs[parser] = list(found)
        place.joinpath(parser).mkdir()
        place.joinpath(parser, LOG).write_bytes(naive.batch(pairs[parser]))
    calls = [
        ["--files", f"{parser}/{LOG}", option, "--skip-record-metadata"] for parser, (_, option) in DECODERS.items()
    ]
    return dict(zip(DECODERS, zip(pairs.values(), oracle.dump(place, calls), strict=True), strict=True))


@pytest.mark.parametrize("parser", DECODERS)
def test_records_print_as_the_real_tool_prints_them(parser: str, printed: dict[str, tuple[Pairs, Dump]]) -> None:
    pairs, dump = printed[parser]
    assert (dump.rc, len(dump.stdout.split("\n", 3))) == (0, 4), dump.stderr
    theirs = dump.stdout.split("\n", 3)[3]
    ours = ""
    for offset, (key, value) in enumerate(pairs):
        line = _line(parsers(judged())[parser](offset, key, value))
        assert theirs[len(ours) : len(ours) + len(line)] == line, (key, value)
        ours += line
    assert ours == theirs


def _line(texts: tuple[str | None, str | None]) -> str:
    prefix, line = "| ", ""
    for name, text in zip(("key", "payload"), texts, strict=True):
        if text is not None:
            line += f"{prefix}{name}: {text}"
            prefix = " "
    return line + "\n"


def _pairs(
    rng: random.Random, table: str, known: dict[str, naive.Definition], clients: dict[str, naive.Definition]
) -> Iterator[tuple[bytes | None, bytes | None]]:
    if table in ("cluster_metadata", "remote_log_metadata"):
        yield from ((None, value) for value in _framed(rng, known))
        yield None, None
    else:
        yield from _coordinator(rng, known)
        yield b"", None
        yield b"\x00", b""
        yield bytes.fromhex("7fff"), b""
    if table == "consumer_offsets":
        yield from _consumer_groups(rng, known, clients)


def _framed(rng: random.Random, known: dict[str, naive.Definition]) -> Iterator[bytes]:
    for definition in known.values():
        if definition["type"] != "metadata":
            continue
        low, high = naive.bounds(definition["validVersions"])
        for version in range(low, high + 1):
            head = b"".join(map(naive.varint, (1, definition["apiKey"], version)))
            values = [head + naive.random_message(rng, definition, version) for _ in range(VALUES)]
            yield from values
            yield from naive.mutations(rng, rng.choice(values), CHANGES)
            for other in (high + 1, -1, 0x7FFF, -0x8000):
                head = b"".join(map(naive.varint, (1, definition["apiKey"], other)))
                yield head + naive.random_message(rng, definition, version)
    yield from (bytes.fromhex(text) for text in ("", "ff", "00", "02", "ffffffff0f", "ffffffffff", "8180808008"))
    yield from (bytes.fromhex(text) for text in ("01", "0106", "01ff7f", "0106 00", "01ffff7f", "01ffffffff0f00"))


def _coordinator(rng: random.Random, known: dict[str, naive.Definition]) -> Iterator[tuple[bytes | None, bytes | None]]:
    keys = {one["apiKey"]: one for one in known.values() if one["type"] == "coordinator-key"}
    for definition in known.values():
        if definition["type"] != "coordinator-value":
            continue
        key_definition = keys[definition["apiKey"]]
        prefix = definition["apiKey"].to_bytes(2)
        key = prefix + naive.random_message(rng, key_definition, 0)
        yield key, None
        yield from ((changed, b"\x00\x00") for changed in naive.mutations(rng, key, CHANGES))
        low, high = naive.bounds(definition["validVersions"])
        for version in range(low, high + 1):
            for _ in range(VALUES):
                key = prefix + naive.random_message(rng, key_definition, 0)
                value = version.to_bytes(2) + naive.random_message(rng, definition, version)
                yield key, value
            yield from ((key, changed) for changed in naive.mutations(rng, value, CHANGES))


def _consumer_groups(
    rng: random.Random, known: dict[str, naive.Definition], clients: dict[str, naive.Definition]
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Groups of the classic protocol, whose members carry messages of their own, right and wrong."""
    embedded: dict[str, list[bytes]] = {"Subscription": [b"", b"\x00"], "Assignment": [b"", b"\x00"]}
    for name, values in embedded.items():
        for version in (0, 1, 2, 3, 4, 5, -1, 0x7FFF):
            good = naive.random_message(rng, clients["ConsumerProtocol" + name], max(0, min(version, 3)))
            good = version.to_bytes(2, signed=True) + good
            values += [good, good + b"tail", *naive.mutations(rng, good, CHANGES)]
    key = b"\x00\x02" + naive.random_message(rng, known["GroupMetadataKey"], 0)
    for subscription, assignment in zip(*embedded.values(), strict=True):
        for protocol_type in (b"consumer", b"connect"):
            head = b"\x00\x00" + len(protocol_type).to_bytes(2) + protocol_type + bytes(4) + b"\xff" * 4
            member = b"\x00\x01m\x00\x01c\x00\x01h" + bytes(4)
            member += len(subscription).to_bytes(4) + subscription + len(assignment).to_bytes(4) + assignment
            yield key, head + bytes([0, 0, 0, 1]) + member


def test_control_records_print_as_the_real_tool_prints_them(
    oracle: Oracle, definitions: dict[str, dict[str, naive.Definition]], tmp_path: Path
) -> None:
    pairs = list(_control_pairs(random.Random(SEED), definitions["kafka-clients"]))
    for number, pair in enumerate(pairs):
        tmp_path.joinpath(str(number)).mkdir()
        tmp_path.joinpath(str(number), LOG).write_bytes(naive.batch([pair], is_control=True))
    dumps = oracle.dump(tmp_path, [["--files", f"{number}/{LOG}", "--deep-iteration"] for number in range(len(pairs))])
    for (key, value), dump in zip(pairs, dumps, strict=True):
        sizes = f"keySize: {-1 if key is None else len(key)} valueSize: {-1 if value is None else len(value)}"
        line = f"| offset: 0 CreateTime: 5 {sizes} sequence: -1 headerKeys: []"
        expected: tuple[int, str, str] = 0, "", ""
        try:
            expected = 0, line + control_record_text(key, value, judged()) + "\n", ""
        except LogstoreError as error:
            reason = "" if error.message is None else f": {error.message}"
            expected = 1, line, f'Exception in thread "main" {error.java_class}{reason}'
        assert dump.stdout.startswith("Dumping"), dump
        found = dump.rc, dump.stdout.split("\n", 3)[3], dump.stderr.split("\n", 1)[0]
        assert found == expected, (key, value)


def _control_pairs(
    rng: random.Random, known: dict[str, naive.Definition]
) -> Iterator[tuple[bytes | None, bytes | None]]:
    bodies = {
        2: "LeaderChangeMessage",
        3: "SnapshotHeaderRecord",
        4: "SnapshotFooterRecord",
        5: "KRaftVersionRecord",
        6: "VotersRecord",
    }
    for key_type, name in bodies.items():
        key = bytes(2) + key_type.to_bytes(2)
        for version in (0, 1, 2, -1):
            body = version.to_bytes(2, signed=True) + naive.random_message(rng, known[name], 0)[2:]
            yield key, body
            yield from ((key, changed) for changed in naive.mutations(rng, body, CHANGES))
        yield key, None
    marker = bytes.fromhex("0000 00000007")
    for key_hex in ("00000000", "00000001", "0000000105", "00070001", "ffff0001", "0000", "", "00000007", "0000ffff"):
        yield bytes.fromhex(key_hex), marker
    for key_type in (0, 1):
        for value_hex in ("", "00", "0000", "00000000", "0003000000010203", "ffff00000001"):
            yield bytes(2) + key_type.to_bytes(2), bytes.fromhex(value_hex)
        yield bytes(2) + key_type.to_bytes(2), None
    yield None, marker
    yield bytes.fromhex("00000009"), None


DECODER_CLASSES = [
    f"org.apache.kafka.tools.api.{name}"
    for name in ("StringDecoder", "IntegerDecoder", "LongDecoder", "DefaultDecoder", "Decoder2")
]
DECODED = [b"", b"abc", bytes(4), b"\xff" * 7, bytes(range(8)), b"\x80" * 9, "é😀".encode(), b"\xed\xa0\x80"]


def test_decoder_classes_print_and_fail_as_the_real_ones(oracle: Oracle, tmp_path: Path) -> None:
    for number, value in enumerate(DECODED):
        tmp_path.joinpath(str(number)).mkdir()
        tmp_path.joinpath(str(number), LOG).write_bytes(naive.batch([(value, value), (None, None)]))
    cases = [(name, number, value) for name in DECODER_CLASSES for number, value in enumerate(DECODED)]
    options = ["--skip-record-metadata", "--key-decoder-class"]
    calls = [["--files", f"{number}/{LOG}", *options, name, "--value-decoder-class", name] for name, number, _ in cases]
    for (name, _, value), dump in zip(cases, oracle.dump(tmp_path, calls), strict=True):
        expected: tuple[int, str, str]
        try:
            text = decoder(name)(value)
            expected = 0, f"| key: {text} payload: {text}\n\n", ""
        except LogstoreError as error:
            reason = "" if error.message is None else f": {error.message}"
            expected = 1, "", f'Exception in thread "main" {error.java_class}{reason}'
        printed = dump.stdout.split("\n", 3)[3] if dump.stdout.count("\n") > 2 else ""
        found = dump.rc, printed, dump.stderr.split("\n", 1)[0]
        if name.endswith("DefaultDecoder"):
            expected = *expected[:1], ARRAY.sub("[B@", expected[1]), expected[2]
            found = *found[:1], ARRAY.sub("[B@", found[1]), found[2]
        assert found == expected, (name, value)

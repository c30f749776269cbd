"""`make kafka-diff` tells each name, field and answer that another Kafka has otherwise, and nothing else."""

from __future__ import annotations

import json

from tests.kafka import kafka_diff
from tests.naive.topics import definition_of
from tests.support.oracle import Dump

RECORD = {
    "type": "metadata",
    "name": "R",
    "validVersions": "0",
    "fields": [{"name": "A", "type": "int32", "about": "one"}],
}


def lines_of(record: dict[str, object]) -> dict[str, str]:
    return {"kafka-metadata R": "\n".join(kafka_diff._lines(definition_of(json.dumps(record))))}


def dump(stdout: str, rc: int = 0) -> Dump:
    return Dump(["--files", "x"], rc, stdout, "")


def test_names_that_come_and_go_and_facts_that_change_are_told() -> None:
    before = {"a": ["INT", "1"], "b": ["INT", "2"], "same": []}
    after = {"b": ["INT", "3"], "c": ["LONG", "4"], "same": []}
    assert list(kafka_diff.changes(before, after)) == [
        "- a",
        '~ b: ["INT", "2"] → ["INT", "3"]',
        '+ c: ["LONG", "4"]',
    ]


def test_fields_of_records_are_told_without_their_prose() -> None:
    more = {"name": "B", "type": "string", "about": "two"}
    before, after = lines_of(RECORD), lines_of({**RECORD, "validVersions": "0-1", "fields": [*RECORD["fields"], more]})
    assert list(kafka_diff.definition_changes(before, after)) == [
        "~ kafka-metadata R",
        "    -type metadata, name R, validVersions 0",
        "    +type metadata, name R, validVersions 0-1",
        "    +  name B, type string",
    ]
    reworded = {**RECORD, "fields": [{"name": "A", "type": "int32", "about": "other words"}]}
    assert not list(kafka_diff.definition_changes(before, lines_of(reworded)))


def test_answers_that_differ_in_the_same_words_are_told_once() -> None:
    same, old, new = dump("[B@1f\n"), dump("old\n"), dump("new\n", rc=1)
    (told,) = kafka_diff.answer_changes([(same, dump("[B@2e\n")), (old, new), (old, new)])
    call, code, place, *shown = told.splitlines()
    assert call == "dump --files x and 1 more calls"
    assert (code, place.partition(" line ")[0]) == ("    exit code: expected 0, found 1", "    stdout:")
    assert shown == ["    - old", "    + new"]

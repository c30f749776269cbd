"""`logstore diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from logstore.disk.names import file_name, normal_path
from logstore.disk.recognition import name_of_partition
from logstore.errors import UsageError
from logstore.rows.schema import json_name

from .paths import readable_partition
from .rows import Cells, JsonField, Row, RowType, TypedRows, VerbAnswer, members, one_row
from .verbs import FINDINGS, Verb, path_argument

if TYPE_CHECKING:
    from logstore.audit.replica_diff import Difference, DifferencePlace

DIFFERENCE = RowType(
    "difference",
    "How two replicas compare.",
    (
        JsonField("startOffset", "integer", "compared from here on; below, one has nothing, or it is compacted"),
        JsonField("endOffset", "integer", "both have the same batches up to here; exclusive"),
        JsonField("batchCount", "integer", "batches up to there"),
        JsonField("isSame", "boolean", "whether both end there"),
        JsonField("isShorter", "boolean", "whether one of them ends there, and neither is damaged"),
        JsonField("fields", "array", "names of the fields of the header in which the next batches differ"),
        JsonField("first", "array", "the next batch of each, null if there is none: `path`, `position`, `header`"),
        JsonField(
            "damaged", "array", "the last damage that was passed over in each, null without any: `path`, `position`"
        ),
    ),
)


@click.command(
    "diff", cls=Verb, prints=[DIFFERENCE], example="logstore diff /var/lib/kafka/data/orders-0 /mnt/other/data/orders-0"
)
@path_argument("replica", readable_partition)
@path_argument("other", readable_partition)
@click.option("--force", is_flag=True, help="Compare what two partitions have by their names, too.")
def command(replica: str, other: str, force: bool) -> VerbAnswer:
    """Compare two replicas of a partition up to the first batch that is not the same.

    What is missing in one of them below its log start, or compacted, is not compared. The exit code is 1 if they
    differ, or one is damaged there; one that is only shorter, as a follower's that has not caught up, does not differ.
    """
    from logstore.audit.replica_diff import compare

    if not force:
        _require_same_partition(replica, other)
    difference = compare(replica, other)
    is_fine = difference.is_same or difference.is_shorter
    code = 0 if is_fine and difference.damaged == (None, None) else FINDINGS
    row = members(difference) | {
        "isSame": difference.is_same,
        "isShorter": difference.is_shorter,
        "fields": list(map(json_name, difference.fields)),
        "first": [place and members(place) | {"header": _header(place)} for place in difference.first],
        "damaged": [place and members(place) for place in difference.damaged],
    }
    return VerbAnswer([one_row(DIFFERENCE, row)], code, _lines(replica, other, difference))


def _header(place: DifferencePlace) -> Row:
    return {json_name(name): value for name, value in place.header.items()}


def _require_same_partition(replica: str, other: str) -> None:
    first, second = name_of_partition(replica), name_of_partition(other)
    if first and second and first[:2] != second[:2]:
        raise UsageError(
            "These are two partitions, not two replicas of one",
            path=other,
            expected=file_name(normal_path(replica)),
            found=file_name(normal_path(other)),
            advice="--force compares them",
        )


def _lines(replica: str, other: str, difference: Difference) -> list[str | Cells | TypedRows]:
    same = [
        f"{difference.batch_count} batches are the same, from offset {difference.start_offset} up to "
        f"{difference.end_offset}.",
        *(f"{place.path} is damaged at byte {place.position}: passed over." for place in difference.damaged if place),
    ]
    first, second = difference.first
    if difference.is_same:
        return [*same, "Both end there."]
    if first is None or second is None:
        ended, longer = (replica, second) if first is None else (other, first)
        return [*same, f"{ended} ends there; the other goes on in {_place(longer)}."]
    names = [name for name in first.header if name in difference.fields or name == "base_offset"]
    rows = [(name, first.header[name], second.header[name]) for name in names]
    headers = Cells(("field", _place(first), _place(second)), rows)
    return [*same, f"They differ in {', '.join(difference.fields)}:", "", headers]


def _place(place: DifferencePlace | None) -> str:
    return "" if place is None else f"{place.path} byte {place.position}"

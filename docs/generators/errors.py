"""The page of the errors: the closed list, with what to do about each."""

from __future__ import annotations

import builtins
import re

from logstore import errors
from logstore.errors import CoordinatorError, LogstoreError, Recovery

from .markdown import table

#: what to do about errors that no producer meets, or where more is to be said than a producer's next call
WHAT_TO_DO = {
    "AbortRequiredError": "see `__cause__` for the record or call that failed",
    "IllegalGenerationError": "the group went on: poll again, and process from the committed offset",
    "IllegalStateError": "see the message: a call too early, too late, or from a second thread",
    "IllegalTransitionError": "report it: this is a bug",
    "InvalidGroupIdError": "name a group",
    "InvalidPidMappingError": "the id expired (`transactional.id.expiration.ms`), or another producer has it",
    "InvalidProducerEpochError": "another producer has this `transactional.id`: run one instance for each id",
    "InvalidTimestampError": "see `record_errors`, and `message.timestamp.before.max.ms` and `.after.max.ms`",
    "InvalidTopicError": "write to another topic: the name is not allowed, or the topic is internal",
    "InvalidTxnTimeoutError": "lower `transaction.timeout.ms`, or raise the store's `transaction.max.timeout.ms`",
    "OffsetMetadataTooLargeError": "shorten the text beside the offset",
    "ProducerFailedError": "see `__cause__`",
    "ProducerFencedError": "another producer has this `transactional.id`: run one instance for each id",
    "RecordBatchTooLargeError": "send fewer records at once, or raise `segment.bytes`",
    "RecordTooLargeError": "send a smaller record, or raise `max.request.size` and the topic's `max.message.bytes`",
    "SerializationError": "see `__cause__`: the serializer's own error",
    "UnknownMemberIdError": "the member was out for `max.poll.interval.ms`: poll again",
    "UsageError": "see the message, which says what is expected",
    "BufferExhaustedError": "send less, or raise `buffer.memory` or `max.block.ms`; see why the log is slow",
    "CheckpointFormatError": "restore the file, or delete a checkpoint and let every log be recovered",
    "CommitFailedError": "the group went on without this member: poll again, and process from the committed offset",
    "CorruptIndexError": "`logstore repair`; or delete the index, it is made anew on the next start",
    "CorruptRecordError": "read on behind the batch, and copy what is good with `logstore salvage`",
    "CorruptSnapshotError": "delete the file: the one before is taken; or `logstore repair`",
    "DataDirectoryError": "see the message: another process may have the lock, or the path is not what it should be",
    "DecompressionError": "as `CorruptRecordError`; a stream that would grow past its cap is refused too",
    "FencedInstanceIdError": "another member has this `group.instance.id`: give each instance its own",
    "GroupIdNotFoundError": "name a group that has committed or has members: `logstore groups`",
    "InconsistentGroupProtocolError": "give all members of the group a common assignor",
    "InconsistentTopicIdError": "move the directory away, or write the right id into its `partition.metadata`",
    "IndexFullError": "raise `segment.index.bytes`; an appended log rolls by itself",
    "InvalidConfigurationError": "see [Configurations](configurations.md)",
    "InvalidNameError": "move the directory or file away: Kafka does not start beside it either",
    "InvalidOffsetError": "as `CorruptIndexError`",
    "InvalidPartitionsError": "partitions are at least 1 and never fewer than before",
    "InvalidRecordError": "mend the record that the message names; of a read, as `CorruptRecordError`",
    "KafkaStorageError": "see [a full or failing disk](../how-to/embed.md#a-full-or-failing-disk); open the store anew",
    "LogCleaningAbortedError": "nothing: the next round cleans the log",
    "NoOffsetForPartitionError": "seek, commit an offset, or set `auto.offset.reset`",
    "NonEmptyGroupError": "close the group's consumers first",
    "OffsetMovedToTieredStorageError": "read at a broker with tiered storage, or seek to `beginning_offsets`",
    "OffsetOutOfRangeError": "seek to an offset between `beginning_offsets` and `end_offsets`",
    "OffsetOverflowError": "`logstore recover` splits the segment, as a broker does",
    "OffsetsOutOfOrderError": "append batches in the order of their offsets",
    "PolicyViolationError": "`delete_records` needs `cleanup.policy` with delete; 10,000 partitions a call at most",
    "RecoveryLossError": "`logstore salvage` first; then `accept_loss=True`, or `--yes`",
    "SchemaError": "a record of an internal topic that this version cannot read: `logstore dump` shows it",
    "TopicExistsError": "use the topic, or another name",
    "TransactionalIdNotFoundError": "call `init_transactions` first; an unused id expires",
    "TransactionCoordinatorFencedError": "a newer coordinator wrote here: restore both from one moment",
    "UnexpectedAppendOffsetError": "append behind the log's end",
    "UnknownTopicOrPartitionError": "create the topic, or wait for it",
    "WakeupError": "stop reading: somebody called `wakeup`",
}

_HEAD = """\
# Errors, and what to do

Written by `python -m docs.generators` from `logstore/errors`; do not edit.

Every error inherits from `logstore.LogstoreError` and from a builtin of Python, so `except LogstoreError` catches all
of them and `except OSError` those of the disk. Its message is in Kafka's words where Kafka has words for it. An error
has these attributes, None where they do not apply:

| attribute | says |
| --- | --- |
| `message` | what is wrong |
| `path`, `position`, `offset` | where: file or directory, byte, Kafka offset |
| `expected`, `found` | the two sides of the check that failed |
| `advice` | what to do now |
| `kafka_name`, `kafka_code` | the name and number in Kafka's `Errors` |
| `java_class` | the exception that Kafka's own tool or client ends with |
| `recovery` | what a producer does about it, below |

```python
import logstore

with logstore.open("data") as store:
    try:
        store.log("orders", 0)
    except logstore.errors.UnknownTopicOrPartitionError as error:
        assert isinstance(error, logstore.LogstoreError) and isinstance(error, LookupError)
        assert (error.kafka_name, error.kafka_code) == ("UNKNOWN_TOPIC_OR_PARTITION", 3)
        assert error.recovery is logstore.errors.Recovery.RETRY
```

## What a producer does

Every error that a producer meets says what its program does next, as the Java client classifies it (KIP-1050):

"""

_RECOVERIES = {
    Recovery.RETRY: "call again: the cause passes by itself",
    Recovery.ABORT: "abort the transaction, then begin again; without one the record is not in the log",
    Recovery.CLOSE: "close this producer and open another, after the advice of the error",
    Recovery.MEND: "correct the call: it changed nothing",
}


def page() -> str:
    """Return the page."""
    found = [getattr(errors, name) for name in errors.__all__]
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, LogstoreError)]
    concrete = [kind for kind in kinds if kind not in (LogstoreError, CoordinatorError)]
    missing = [kind.__name__ for kind in concrete if not _what_to_do(kind)]
    assert not missing, f"errors without advice: {missing}"
    unknown = WHAT_TO_DO.keys() - {kind.__name__ for kind in concrete}
    assert not unknown, f"advice for errors that are not there: {unknown}"
    recoveries = table(["`recovery`", "what to do"], [(f"`{one.name}`", text) for one, text in _RECOVERIES.items()])
    return (
        _HEAD
        + recoveries
        + "\n## With a code of Kafka's\n\n"
        + _errors([kind for kind in concrete if kind.kafka_code is not None])
        + "\n## Without one\n\nWrong calls, what clients say by themselves, and what is wrong in files.\n\n"
        + _errors([kind for kind in concrete if kind.kafka_code is None])
    )


def _errors(kinds: list[type[LogstoreError]]) -> str:
    return table(
        ["error", "what is wrong", "what to do", "in Kafka", "also a"],
        [
            (
                f"`{kind.__name__}`",
                re.sub(r" \(`[\w.]+`\)\.$", ".", (kind.__doc__ or "").partition("\n")[0]),
                _what_to_do(kind),
                _in_kafka(kind),
                _builtin(kind),
            )
            for kind in kinds
        ],
    )


def _in_kafka(kind: type[LogstoreError]) -> str:
    if kind.kafka_name is None:
        return (kind.java_class or "").rpartition(".")[2]
    return f"{kind.kafka_code} {kind.kafka_name.replace('_', ' ').lower()}"


def _builtin(kind: type[LogstoreError]) -> str:
    return next(base.__name__ for base in kind.__mro__ if base.__module__ == builtins.__name__)


def _what_to_do(kind: type[LogstoreError]) -> str:
    parts = [f"`{kind.recovery.name}`" if kind.recovery is not None else "", WHAT_TO_DO.get(kind.__name__, "")]
    return ": ".join(filter(None, parts))

"""What a producer's program is told to do, for every error of the closed list."""

from __future__ import annotations

from collections.abc import Iterator

from logstore import errors
from logstore.errors import LogstoreError, Recovery
from logstore.errors.advice import ADVICE

RECOVERIES = {
    Recovery.RETRY: """
        BufferExhausted ConcurrentTransactions CoordinatorLoadInProgress CoordinatorNotAvailable NotCoordinator
        RebalanceInProgress ReentrantCall RequestTimedOut TooManyOpenFiles UnknownTopicOrPartition UnstableOffsetCommit
    """,
    Recovery.ABORT: """
        AbortRequired CommitFailed FencedInstanceId IllegalGeneration InvalidRecord InvalidTimestamp OutOfOrderSequence
        RecordBatchTooLarge RecordTooLarge TransactionAbortable TransactionAborted UnknownMemberId
        UnsupportedCompressionType
    """,
    Recovery.CLOSE: """
        IllegalTransition InvalidPidMapping InvalidProducerEpoch InvalidRequest InvalidTopic InvalidTxnState
        InvalidTxnTimeout KafkaStorage OffsetMetadataTooLarge ProducerFailed ProducerFenced
    """,
    Recovery.MEND: "IllegalState InvalidGroupId KernelBuild Serialization Usage",
    # of files that are read, of consumers, groups and topics, and of markers: no producer meets them
    None: """
        CheckpointFormat Coordinator CorruptIndex CorruptRecord CorruptSnapshot DataDirectory Decompression
        GroupIdNotFound GroupSubscribedToTopic InconsistentGroupProtocol InconsistentTopicId IndexFull
        InvalidConfiguration InvalidName InvalidOffset InvalidPartitions InvalidUpdateVersion LogCleaningAborted
        NonEmptyGroup NoOffsetForPartition OffsetMovedToTieredStorage OffsetOutOfRange OffsetOverflow
        OffsetsOutOfOrder PolicyViolation RecoveryLoss Schema TopicExists
        TransactionalIdNotFound TransactionCoordinatorFenced UnexpectedAppendOffset Wakeup
    """,
}


def all_errors(kind: type[LogstoreError] = LogstoreError) -> Iterator[type[LogstoreError]]:
    for one in kind.__subclasses__():
        if one.__module__ == errors.__name__:
            yield one
        yield from all_errors(one)


def test_every_error_says_what_to_do() -> None:
    expected = {f"{name}Error": recovery for recovery, names in RECOVERIES.items() for name in names.split()}
    assert {one.__name__: one.recovery for one in all_errors()} == expected


def test_every_error_has_advice() -> None:
    without = {errors.LogstoreError, errors.CoordinatorError}
    for kind in set(all_errors()) - without:
        error = kind("No")
        assert error.advice == ADVICE.get(kind.__name__) or error.advice == error.recovery.value  # type: ignore[union-attr]
        assert error.advice
        assert str(error) == "No"  # the text is that of Kafka's
        error.advice = "do that"
        assert (error.advice, str(error)) == ("do that", "No; do that")


def test_a_message_tells_only_the_side_of_a_check_that_there_is() -> None:
    assert str(errors.DataDirectoryError("No", path="d", found="File too large")) == "No; at d; found File too large"
    assert str(errors.UsageError("No", expected="bytes", found=7)) == "No; expected bytes, found 7"
    assert str(errors.UsageError("No", expected="bytes")) == "No; expected bytes"

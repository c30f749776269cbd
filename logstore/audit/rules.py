"""All rules that audits know: the closed list. A name, once published, stays."""

from __future__ import annotations

from .finding import Rule, Severity

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING
_SALVAGE = "`logstore salvage` copies all good batches to a new directory; a healthy replica is better still"
_REBUILD = "delete the file while the broker is down: it is made anew on the next start; or `logstore repair`"

LOG_CRC = Rule("log-crc", _ERROR, "A batch is not what its checksum says.", _SALVAGE)
LOG_LENGTH = Rule("log-length", _ERROR, "Bytes in the middle of a segment are no batch.", _SALVAGE)
LOG_TAIL = Rule(
    "log-tail",
    _WARNING,
    "Bytes behind the last batch of a segment are no batch.",
    "a broker cuts them off on a start after a crash; after a clean shutdown it writes behind them: `logstore repair`",
)
LOG_MAGIC = Rule("log-magic", _ERROR, "A batch of a magic that nobody knows.", _SALVAGE)
LOG_CODEC = Rule("log-codec", _ERROR, "A batch is compressed with a codec that Kafka does not know.", _SALVAGE)
LOG_OFFSET_ORDER = Rule("log-offset-order", _ERROR, "Offsets go back or come twice.", _SALVAGE)
LOG_OFFSET_RANGE = Rule("log-offset-range", _ERROR, "A batch has offsets that its segment cannot hold.", _SALVAGE)
LOG_RECORD_COUNT = Rule("log-record-count", _ERROR, "A batch says it has more records than offsets.", _SALVAGE)
LOG_LEADER_EPOCH = Rule(
    "log-leader-epoch",
    _ERROR,
    "Leader epochs of batches go back.",
    "two leaders wrote: compare with the other replicas, `logstore diff`",
)
LOG_MARKER = Rule("log-marker", _ERROR, "A control batch with a producer id is no transaction marker.", _SALVAGE)
LOG_RECORDS = Rule(
    "log-records",
    _ERROR,
    "A batch with the right checksum has records that are not what they say.",
    "consumers stop at it: seek behind its last offset, and find out which producer wrote it",
)
LOG_UNREADABLE = Rule(
    "log-unreadable", _ERROR, "A segment cannot be read.", "look at the permissions and the disk; see the system's log"
)
DIRECTORY_ENTRY = Rule(
    "directory-entry",
    _ERROR,
    "Something in the directory is not Kafka's, or must not be followed.",
    "a broker does not start beside it: move it away",
)
ORPHAN_INDEX = Rule(
    "orphan-index",
    _WARNING,
    "An index has no segment.",
    "a broker deletes it on its start; look where the `.log` went",
)

SWAP_LEFT_OVER = Rule(
    "swap-left-over",
    _WARNING,
    "The cleaner's output was being put in the place of segments when the broker ended.",
    "a broker goes on with that on its next start, and what is in the way is deleted: start one, then verify again",
)

OFFSET_INDEX = Rule(
    "offset-index", _ERROR, "An entry of an `.index` does not lead to the batch of its offset.", _REBUILD
)
OFFSET_INDEX_MISSING = Rule(
    "offset-index-missing", _WARNING, "A segment has no `.index`.", "a broker makes it anew on its next start"
)
TIME_INDEX = Rule("time-index", _ERROR, "An entry of a `.timeindex` is not what the log says.", "`logstore repair`")
TIME_INDEX_MISSING = Rule(
    "time-index-missing",
    _WARNING,
    "A segment has no `.timeindex`.",
    "a broker goes on with an empty one, and looks for times in vain: `logstore repair`",
)
TIME_INDEX_END = Rule(
    "time-index-end",
    _WARNING,
    "The last entry of a closed segment's `.timeindex` is not its largest timestamp.",
    "retention by time goes by that entry: `logstore repair`",
)
INDEX_ZEROS = Rule(
    "index-zeros",
    _ERROR,
    "An index that is not going to be rebuilt ends in zeros, which count as entries.",
    _REBUILD,
)
TRANSACTION_INDEX = Rule(
    "transaction-index",
    _ERROR,
    "A `.txnindex` does not tell the aborted transactions that the log tells.",
    "read_committed consumers get aborted records, or miss committed ones: `logstore repair`",
)
SNAPSHOT_FORMAT = Rule(
    "snapshot-format",
    _WARNING,
    "A `.snapshot` does not parse.",
    "a broker deletes it and takes the one before: starts take longer",
)
SNAPSHOT_STATE = Rule(
    "snapshot-state",
    _ERROR,
    "A `.snapshot` does not hold the producers that the log had.",
    "duplicates may be taken, or good batches refused: delete it while the broker is down",
)
SNAPSHOT_MISSING = Rule(
    "snapshot-missing",
    _WARNING,
    "There is an open transaction and no `.snapshot`, after a clean shutdown.",
    "a broker forgets the transaction on its next start: delete `.kafka_cleanshutdown` so that it reads the log",
)
LEADER_EPOCHS = Rule(
    "leader-epochs",
    _ERROR,
    "`leader-epoch-checkpoint` does not tell the epochs that the batches have.",
    "replicas truncate by it: stop the broker, `logstore repair`",
)
PARTITION_METADATA = Rule(
    "partition-metadata",
    _ERROR,
    "`partition.metadata` is missing, does not parse, or names another topic id.",
    "a broker sets such a directory aside as -stray: write the topic's id into it, see `logstore topics`",
)
CHECKPOINT_FORMAT = Rule(
    "checkpoint-format",
    _ERROR,
    "A checkpoint does not parse.",
    "a broker goes on as if it were empty: restore it, or let every log be recovered",
)
CHECKPOINT_OFFSET = Rule(
    "checkpoint-offset",
    _ERROR,
    "A checkpoint has an offset that the log cannot have.",
    "was data lost behind it? compare with the other replicas, `logstore diff`",
)
CHECKPOINT_PARTITION = Rule(
    "checkpoint-partition",
    _WARNING,
    "A checkpoint tells of a partition that has no directory.",
    "did the directory get lost? a broker drops the entry",
)

INTERNAL_RECORD = Rule(
    "internal-record",
    _ERROR,
    "A record of an internal topic does not parse.",
    "a coordinator that loads it fails or skips it: what wrote it?",
)

SEQUENCE_GAP = Rule(
    "sequence-gap",
    _ERROR,
    "A producer's batches do not follow on each other: some are missing.",
    "records that the producer believes written are lost: compare with the other replicas, `logstore diff`",
)
SEQUENCE_DUPLICATE = Rule(
    "sequence-duplicate",
    _ERROR,
    "A producer's batch is there again.",
    "consumers see its records twice: deduplicate by producer id, epoch and sequence",
)
PRODUCER_EPOCH_BACK = Rule(
    "producer-epoch-back",
    _ERROR,
    "A producer wrote with an epoch below that of its earlier batches.",
    "two producers share an id: look for a clone of a client's host, or a log put together from two",
)
PRODUCER_FENCED = Rule(
    "producer-fenced",
    _ERROR,
    "A producer wrote with an epoch that a marker had ended.",
    "its records came after their transaction, and count as none: is a broker older than 3.6 among the replicas?",
)

TRANSACTION_HANGING = Rule(
    "transaction-hanging",
    _ERROR,
    "An open transaction that no coordinator is going to end.",
    "`kafka-transactions.sh --bootstrap-server … abort --topic … --partition … --start-offset …` with its first offset",
)
TRANSACTION_TIMEOUT = Rule(
    "transaction-timeout",
    _WARNING,
    "A transaction has been open for longer than its timeout.",
    "the coordinator should have aborted it: is the broker of its partition of __transaction_state up?",
)
TRANSACTION_NO_DATA = Rule(
    "transaction-no-data",
    _WARNING,
    "A transaction has been open for longer than its timeout, and has no data in a partition that it claims.",
    "it holds nobody back; look for a producer that begins transactions and stops",
)
TRANSACTION_ATOMICITY = Rule(
    "transaction-atomicity",
    _ERROR,
    "A transaction was committed in one partition and aborted in another.",
    "its records are there in part: find them by producer id and epoch, `logstore dump --producer-id`",
)
MARKER_LATE = Rule(
    "marker-late",
    _WARNING,
    "A transaction was decided longer than its timeout ago, and a marker has not come.",
    "the coordinator goes on trying: can it reach the partition's leader?",
)
MARKER_MISSING = Rule(
    "marker-missing",
    _ERROR,
    "A transaction is decided and closed, and a partition has no marker of it.",
    "`kafka-transactions.sh … abort --start-offset …` writes an ABORT, which is right only for an aborted transaction",
)
MARKER_DOUBLED = Rule(
    "marker-doubled",
    _WARNING,
    "A transaction has two markers in one partition.",
    "nothing is wrong with the records; a coordinator sent it again, as after a failover",
)
MARKER_CONTRADICTING = Rule(
    "marker-contradicting",
    _ERROR,
    "Markers of one transaction say different things, or another than its coordinator decided.",
    "the first marker counts for readers; find the records by producer id and epoch, `logstore dump --producer-id`",
)

OFFSETS_LOST = Rule(
    "offsets-lost",
    _ERROR,
    "Offsets are missing in a log that was never compacted, and no damage tells why.",
    "records are gone: compare with the other replicas, `logstore diff`",
)

GROUP_AHEAD = Rule(
    "group-ahead",
    _WARNING,
    "A group has committed an offset beyond the end of the log.",
    "it starts anew by auto.offset.reset: was the log truncated, or its topic made again? set the group's offset",
)
CHAIN_AHEAD = Rule(
    "chain-ahead",
    _ERROR,
    "A committed read-process-write transaction has read further than its input goes.",
    "the input has lost records behind what was processed: compare with the other replicas, `logstore diff`",
)
CHAIN_BACK = Rule(
    "chain-back",
    _ERROR,
    "A committed read-process-write transaction goes back behind an earlier one's input.",
    "input was processed twice: was the group reset, or did two instances without fencing work on one partition?",
)
CHAIN_MIXED = Rule(
    "chain-mixed",
    _WARNING,
    "A group commits offsets of one partition within transactions and outside of them.",
    "exactly once needs all commits within: enable.auto.commit=false, no commitSync",
)

RULES = tuple(value for value in list(vars().values()) if isinstance(value, Rule))

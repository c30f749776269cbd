"""What the block of `append_steps` has, an i64 each; an object by its address, which is not kept alive by it."""

#: arguments of `PartitionLog.append_records`, in their order
NAMES = (
    *("values", "keys", "timestamps"),
    *("producer_id", "producer_epoch", "base_sequence", "is_transactional", "leader_epoch", "guard"),
)
PLACE_COUNT = 3  # of them may be given without their names
#: attributes of the log, and of a segment
ATTRIBUTES = (
    *("change_count", "first_unstable_offset", "is_only_replica", "now_ms"),
    *("log_start_offset", "log_end_offset", "high_watermark", "size"),
)

#: First functions in Python, `finish` for what is prepared and not all written; the log's lock, and its attributes as
#: a dict; objects and classes. Then what the log is now: `known_change_count`, the very int for which all this is so, 0
#: if nothing is; the attributes of its last segment, the end offset at which a flush is due, and the arguments of
#: `prepare_append`. Functions of the kernels, and in place of a file for them two zeros. Names of attributes, and of
#: arguments.
SLOTS = (
    *("call_python", "finish", "acquire", "release", "log", "system_clock", "info_type", "none", "false", "true"),
    *("int", "known_change_count", "segment", "flush_offset", "arguments"),
    *("prepare_append", "commit_append", "no_file", "no_descriptor"),
    *(f"{name}_name" for name in ATTRIBUTES),
    *NAMES,
)

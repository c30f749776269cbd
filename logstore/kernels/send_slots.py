"""What the blocks of `send_steps` have, an i64 each; an object by its address, which is not kept alive by it."""

#: arguments of `Producer.send`, in their order
NAMES = ("topic", "value", "key", "headers", "partition", "timestamp_ms")

#: a producer's: `quick` and what makes futures, the function in Python, the transactions, or 0, and the state in which
#: there has to be one with its attribute's name; ints, room in a batch, and whether the system's clock has the time;
#: classes; in which bytes of a future its slots are; and names of arguments
PRODUCER_SLOTS = (
    *("quick", "future_type", "call_python", "transactions", "in_transaction", "state_name", "minus_one", "none"),
    *("batch_size", "has_clock", "bytes", "str", "int", "batch_place", "index_place", "key_place", "value_place"),
    *NAMES,
)
#: a batch's; `last_timestamp`: an int of `timestamps` that is `last_ms`
BATCH_SLOTS = ("batch", "values", "timestamps", "size", "last_ms", "last_timestamp")
RECORD_OVERHEAD_SIZE = 21  # `DefaultRecord.MAX_RECORD_OVERHEAD`

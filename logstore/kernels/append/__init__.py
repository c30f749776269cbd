"""The fast path of an append: a request becomes a batch, is written, and moves the log's struct, in one call."""

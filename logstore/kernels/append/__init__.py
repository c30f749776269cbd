"""Fast path of an append: makes a batch from a request, writes it and updates the log's struct, in one call."""

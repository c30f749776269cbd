"""Index entries, producer state and open transactions, stepped by the rows of a batch table."""

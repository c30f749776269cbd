"""Records of v2 batches to the columns of record tables."""

"""Facts that a pass over a partition leaves for checks across partitions, and for answers: columns that pickle."""

"""Facts that a pass over a partition leaves, for checks across partitions and for answers: columns that can be pickled.

| module          | facts about                                                                       |
|-----------------|-----------------------------------------------------------------------------------|
| `transactions`  | the transactions of the partition                                                 |
| `offsets`       | what is at every offset                                                           |
| `times`         | when records were written, and by whose clock                                     |
| `coordinators`  | the records of `__transaction_state`, which `states` packs, and committed offsets |
| `state_changes` | which record of a transactional id may follow on another                          |
"""

"""Facts that a pass over a partition collects for the rules: columns and plain values, which can be pickled.

| module          | facts about                                                                       |
|-----------------|-----------------------------------------------------------------------------------|
| `batches`       | batches of one window beside those before them; the followers of the pass         |
| `records`       | records that cannot be read, or contradict their batch                            |
| `indexes`       | entries of `.index` and `.timeindex`, and the batches they lead to                |
| `sequences`     | sequences and epochs of producers                                                 |
| `producers`     | `.txnindex` and `.snapshot` beside what the log says                              |
| `epochs`        | `leader-epoch-checkpoint` beside the epochs of batches                            |
| `transactions`  | the transactions of the partition                                                 |
| `offsets`       | what is at every offset                                                           |
| `coordinators`  | the records of `__transaction_state`, which `states` packs, and committed offsets |
| `state_changes` | which record of a transactional id may follow on another                          |
| `surroundings`  | checkpoints and topic ids of a data directory                                     |
| `startup_files` | files that a broker reads before its metadata log, and does not start without     |
| `swaps`         | segments that a copy holds beside the one they were merged into                   |
"""

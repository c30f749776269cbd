"""State derived from a log, as folds of its batch table: a state object, and a `step` over rows.

Append, recovery, verification and audits use the same steps. Nothing here touches a file or reads the clock.

| module                 | what is derived                                                                     |
|------------------------|-------------------------------------------------------------------------------------|
| `segment_indexes`      | `.index` and `.timeindex` of one segment                                            |
| `leader_epochs`        | `leader-epoch-checkpoint`                                                           |
| `producer_state`       | `.snapshot`: producers, their epochs, sequences and last batches                    |
| `producer_update`      | the steps of the producer state: as a replica, as a rebuild, as a leader's append   |
| `open_transactions`    | undecided transactions; the last stable offset                                      |
| `aborted_transactions` | `.txnindex` of one segment                                                          |
| `committed_filter`     | the batches that a read_committed consumer skips                                    |
| `verification`         | which transactional batches may begin a transaction (KIP-890)                       |
"""

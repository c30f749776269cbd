"""Everything that lies beside a log, as folds of its batch table: a state, and steps by rows.

Append, recovery, verification and audits use the same steps. Nothing here touches a file or asks for the time.

| module                 | what is derived                                                                     |
|------------------------|-------------------------------------------------------------------------------------|
| `segment_indexes`      | `.index` and `.timeindex` of one segment                                            |
| `leader_epochs`        | `leader-epoch-checkpoint`                                                           |
| `producer_state`       | `.snapshot`: producers, their epochs, sequences and last batches                    |
| `producer_update`      | the steps of the producer state: as a replica, as a rebuild, as a leader's append   |
| `open_transactions`    | transactions that are not decided; the last stable offset                           |
| `aborted_transactions` | `.txnindex` of one segment                                                          |
| `committed_filter`     | which batches a read_committed consumer skips                                       |
| `verification`         | which transactional batches may come (KIP-890)                                      |
"""

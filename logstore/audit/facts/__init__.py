"""What a pass over a partition leaves: columns and plain values, which go from process to process, and rules judge.

| module         | facts about                                                                        |
|----------------|------------------------------------------------------------------------------------|
| `batches`      | batches of one window beside those before them; how facts follow the pass          |
| `records`      | records that cannot be read, or are not what their batch says                      |
| `indexes`      | entries of `.index` and `.timeindex`, and the batches they lead to                 |
| `producers`    | sequences of producers; `.txnindex` and `.snapshot` beside what the log tells      |
| `epochs`       | `leader-epoch-checkpoint` beside the epochs of batches                             |
| `transactions` | the transactions of the partition                                                  |
| `offsets`      | what is at every offset                                                            |
| `coordinators` | the records of `__transaction_state` and `__consumer_offsets`                      |
| `surroundings` | checkpoints and topic ids of a data directory                                      |
"""

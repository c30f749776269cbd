"""Questions asked of data directories, live ones too: nothing here writes, locks, or needs a broker.

What every question stands on:

| module                   | what it does                                                                          |
|--------------------------|---------------------------------------------------------------------------------------|
| `finding`, `rules`       | `Rule`, `Finding`; the closed list of rules                                           |
| `partition`              | `Partition`: files, and what the data directory around them says                      |
| `evidence`               | what can be known of a partition: YES, NO, or UNKNOWN, where no rule is asked           |
| `log_pass`               | one pass over all segments, around damage (`view.walk`), many checks on it    |
| `stable_reading`         | only what two readings agree on is told of a directory that changes                   |
| `topic_records`          | records of internal topics: `evidence`, `coordinator_log`, `group_log` are of them    |

The questions:

| module                   | what is asked                                                                         |
|--------------------------|---------------------------------------------------------------------------------------|
| `verify`                 | is every batch, and every file beside the log, as a broker wrote it (`*_checks`)      |
| `record_checks`          | can the records of every batch be decoded                                             |
| `sequence_checks`        | do a producer's batches follow on each other                                          |
| `partition_transactions` | which transactions are in a partition                                                 |
| `lives`                  | which markers answer which decisions of coordinators: the one matcher                 |
| `open_transactions`      | what becomes of those that are open; `explanation`: why readers wait                  |
| `transaction_rules`      | do partitions agree with each other, and with their coordinator                       |
| `offset_ranges`          | what is at every offset                                                               |
| `group_rules`            | how far groups are behind; are their chains of transactions whole                     |
| `directory_audit`        | all of it                                                                             |
"""

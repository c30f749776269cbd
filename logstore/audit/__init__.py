"""Audits of data directories, live ones too: nothing here writes, locks, or needs a broker.

    one pass → checks of a partition, and facts → checks across partitions → findings, and notes of what was not asked

| module              | what it does                                                                              |
|---------------------|-------------------------------------------------------------------------------------------|
| `partition`         | a partition: its files, and what the data directory around it says                        |
| `evidence`          | what can be known of a partition: YES, NO or UNKNOWN; no rule is asked of the unknown     |
| `tails`             | the end of a log, from the newest producer snapshot on                                    |
| `log_pass`, `facts` | one pass over all segments, around damage (`view.walk`), and the facts that it leaves     |
| `checks`            | the rules, and what finds where they are broken: a file for each thing that is checked    |
| `lives`             | which markers answer which decisions of coordinators: the one matcher                     |
| `open_transactions` | verdicts on open transactions, and why readers wait                                       |
| `groups`            | how far groups are behind                                                                 |
| `finding`           | a rule, what silences it, and the findings and notes of where it is broken                |
| `verify`            | rules about files, asked of partitions; `directory_audit`: all rules, of a data directory |
| `stable_reading`    | of a directory that changes, only findings that a second reading confirms                 |
| `replica_diff`      | the first batch in which two replicas differ                                              |
| `segment_table`     | figures of each segment                                                                   |
| `answers`           | `logstore.audit`, `verify`, `transactions`, `explain`: what is asked in public, as rows   |
| `listings`          | `logstore.topics`, `segments`, `producers`, `groups`                                      |
| `contents`          | `logstore.dump`                                                                           |

Called, this package is the function `answers.audit`, see `called_packages`.
"""

from ..called_packages import make_callable

make_callable(__name__)

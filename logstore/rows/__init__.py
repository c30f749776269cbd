"""Each thing that is shown, declared once: names, types, units, nulls and meaning.

A row is a NamedTuple whose annotations are its schema. From it come the tables, CSV and JSON of the command line, Arrow
and Parquet, Spark's columns, the public functions' rows, and the reference.

| module         | what it does                                                              |
|----------------|---------------------------------------------------------------------------|
| `schema`       | fields of a row, read from its annotations; names in JSON                 |
| `places`       | topics, partitions, segments, index entries, producers                    |
| `transactions` | transactions, open ones with verdicts, transactional ids                  |
| `groups`       | committed offsets of groups, and their lag                                |
| `findings`     | findings, and what was looked at                                          |
| `batches`      | record batches and records                                                |
| `dumped`       | what stands in the files of a partition                                   |
| `listing`      | rows that a function returns, with what could not be read                 |
| `arrow`        | Arrow's types and tables of rows; with the extra `[arrow]`                |
"""

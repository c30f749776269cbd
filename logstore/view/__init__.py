"""Reading a log, one of this process or of another one: nothing here writes a file.

`PartitionReader` follows the directory of a partition; a `LogView` is a log at one moment. Both stand on segments,
their search by offset and time, and the walk through their batches, all made of `columns.batch_table.headers`.
"""

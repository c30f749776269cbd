"""A log as readers see it, ours or one that another process writes: nothing here writes a file.

`PartitionReader` follows the directory of a partition; `LogView` is a log at one moment, what is read of it. Both stand
on segments, their search by offset and time, and the walk through their batches. `replay` reads a coordinator's topic.
"""

"""What the benchmarks share: the fixture that measures, floors, inputs, and the report of a run."""

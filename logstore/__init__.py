"""logstore: SQLite for Kafka logs.

Reads real Apache Kafka data directories in process: no broker, no JVM, no server.

What it is: the formats of Kafka 4.3.1 as code (`layout`), one numba scan over a mapped file (`kernels`, `columns`),
the files of a data directory (`disk`) and the records of the internal topics (`topics`).
What it is not: a broker, a network client, or a cluster.
"""

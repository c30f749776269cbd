"""The log cleaner: keeps the last record of each key, and committed transactions (`LogCleaner`, `Cleaner`).

A round reads the dirty part of a log into a map from key to last offset, and rewrites the segments below its end
without the records that the map has later ones for (`rounds`, `rewriting`). `choice` says what may be cleaned and
whether it is worth it.
"""

"""The log cleaner: of each key the last record, of transactions what was committed (`LogCleaner`, `Cleaner`).

A round reads the dirty part of a log into a map from key to last offset (`map_building`), and writes the segments below
its end anew without what the map has later records for (`segment_cleaning`). What may be cleaned, and whether it is
worth it, is said by `choice`; `rounds` does one.
"""

"""Segments of a log that is written: the active one, the closed ones, and their folder."""

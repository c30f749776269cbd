"""Segments of a log that is written: the active one, the closed ones, and the folder that has them."""

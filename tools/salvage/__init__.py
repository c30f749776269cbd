"""Copies of a damaged or large log in a new directory: salvage and samples."""

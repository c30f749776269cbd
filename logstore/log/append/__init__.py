"""Appends to a running log: requests, and the two ways they go."""

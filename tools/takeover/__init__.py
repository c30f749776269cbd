"""A directory given to a broker: what it would find there, and what `promote` writes first."""

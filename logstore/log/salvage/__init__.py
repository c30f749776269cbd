"""What can be saved of a damaged log, and samples of one, in a new directory."""

"""Loading a partition directory, with repairs (`LogLoader`)."""

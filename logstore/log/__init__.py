"""One partition: its configuration and its recovery."""

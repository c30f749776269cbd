"""What keeps a running log in bounds: segments rolled, flushed, deleted, and put in the place of others."""

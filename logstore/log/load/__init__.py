"""A partition directory loaded, and repaired on the way (`LogLoader`)."""

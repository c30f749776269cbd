"""What logstore is measured against, each run the way its own scripts run it."""

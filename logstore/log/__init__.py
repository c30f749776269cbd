"""One partition that is written: opened, appended to, kept in bounds, cleaned, and salvaged when it is damaged."""

"""Work over whole record tables: keys hashed and looked up, headers, fields gathered for Arrow."""

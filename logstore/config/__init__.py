"""Configurations of topics, brokers and clients as data: names, defaults, parsing, checks (`ConfigDef`)."""

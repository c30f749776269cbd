"""Which version this is: asking the installed package for it takes as long as Python takes to start."""

VERSION = "0.1.0"  # that of pyproject.toml

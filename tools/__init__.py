HELP_SETTINGS = {"help_option_names": ["-h", "--help"]}  # of every command

"""The command line: one file a command.  Commands parse, call the packages, and print; the logic is not here."""

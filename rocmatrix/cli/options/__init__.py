"""A command as data, the programs that read it from a command line, and the options that several commands take."""

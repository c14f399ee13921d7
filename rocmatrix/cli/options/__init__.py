"""A command as data, what is made of it (tasks of invoke, parsers, help), and options that several commands take."""

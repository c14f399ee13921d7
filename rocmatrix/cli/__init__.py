"""The command line: tasks, what they call, and the documents that are generated."""

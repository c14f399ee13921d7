"""Sources of logs besides one finished file: a folder of logs, and a file that still grows."""

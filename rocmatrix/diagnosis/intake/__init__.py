"""Where logs come from besides one finished file: the logs of a folder, and a file that still grows."""

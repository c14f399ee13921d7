"""The command line of the host side: the program, its documents generated from data, and checks of words and tests."""

"""Mutants of the modules that decide: mutmut changes the code, the tests have to fail."""

"""Settings: the options of a run, recipes and how they are read. Imports no torch."""

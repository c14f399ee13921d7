"""Settings of a run: sections, recipes, flags and help, and what a resume does with each. Imports no torch."""

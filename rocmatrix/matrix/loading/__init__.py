"""YAML of the matrix read strictly, with the file and line of every mistake; entries appended to it."""

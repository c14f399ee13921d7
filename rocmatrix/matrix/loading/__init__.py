"""The matrix read from YAML, with the line of every mistake."""

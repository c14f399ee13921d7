"""The task of a table: rows, inputs, target."""

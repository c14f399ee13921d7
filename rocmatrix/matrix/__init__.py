"""The compatibility matrix: statements of one kind each, the whole with its cells, and rules derived from the data."""

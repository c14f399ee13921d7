"""Packages that a user adds to a cell: lines of a requirements file, judged, and kept apart from the cell's files."""

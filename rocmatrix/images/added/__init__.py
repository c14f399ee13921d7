"""What people add to a cell: lines of a requirements file, judged, and held apart from the cell's own files."""

"""The compatibility matrix: its statements, cells and rules."""

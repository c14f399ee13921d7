"""A night: the cells of the matrix built together, then each proven, smoked and promoted, and compared with before."""

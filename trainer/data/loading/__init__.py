"""Batches: the order of rows from seed and epoch alone, fetched ahead, and where rows are placed."""

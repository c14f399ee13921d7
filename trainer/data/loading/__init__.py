"""Batches: the order of rows, where they are kept, and their transfer to the device."""

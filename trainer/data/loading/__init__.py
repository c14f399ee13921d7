"""Rows on their way to the device: batches, their order, and where they are held."""

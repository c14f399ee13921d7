"""Measurements of a run: rates, waiting, memory, sensors, MFU, the NaN guard; as JSON lines and to trackers."""

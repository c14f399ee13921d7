"""Snapshots of the cards: sensors, link, throttling and processes, read below /sys and /proc."""

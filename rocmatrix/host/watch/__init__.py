"""The cards now, one snapshot after another: sensors, links, throttling, processes and a run's events."""

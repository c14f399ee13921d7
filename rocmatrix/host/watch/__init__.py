"""Cards at this moment, look after look: sensors, link, throttling and processes, read below /sys and /proc."""

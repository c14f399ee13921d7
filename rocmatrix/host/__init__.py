"""The host's hardware, read from sysfs."""

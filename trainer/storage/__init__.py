"""What lies on disk, whole or absent, and read with suspicion."""

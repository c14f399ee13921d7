"""Files on disk, whole or absent."""

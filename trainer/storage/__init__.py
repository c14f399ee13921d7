"""What is kept on disk, whole or absent."""

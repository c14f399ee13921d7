"""What is on disk, whole or absent: run folders, checkpoints without pickle, the schema of metadata.json."""

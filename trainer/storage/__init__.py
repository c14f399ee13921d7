"""What is on disk, whole or absent: run folders, checkpoints without pickle, what metadata.json has of any run."""

"""One training from configuration to run folder: checkpoints taken and resumed from, metadata, artifacts."""

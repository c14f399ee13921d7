"""What pip and apt are asked for: indexes that hide one another, packages without ROCm, releases that differ."""

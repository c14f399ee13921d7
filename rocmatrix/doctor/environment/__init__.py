"""Rules on environment variables, applied to shells, cells, compose files and Dockerfiles."""

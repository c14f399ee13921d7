"""Images and the native environment: rendered, locked, fetched, and built under a hash of their inputs."""

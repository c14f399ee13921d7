"""Machines without an image: the index's own torch where the small one is out of reach, and which Python."""

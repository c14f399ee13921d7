"""Images: what they are built from and what they say of themselves."""

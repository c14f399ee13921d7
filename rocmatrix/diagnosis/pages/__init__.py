"""All known failures as one page that searches without a network."""

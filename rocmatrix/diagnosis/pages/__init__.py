"""All known failures as one page to search without a network."""

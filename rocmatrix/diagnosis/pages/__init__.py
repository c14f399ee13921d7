"""All known failures as a list that searches without a network, and a page of their causes an area."""

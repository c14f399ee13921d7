"""Names of cards and versions, as people type them and as tools print them, and PCI ids of processors."""

"""Names of cards as people type them and as tools print them: a grammar over the architectures' own names."""

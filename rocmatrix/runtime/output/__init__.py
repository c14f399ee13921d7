"""Files that commands write for a person: whole, or not at all."""

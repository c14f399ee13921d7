"""What every room relies on: errors and their codes, lines for a person, and where files are."""

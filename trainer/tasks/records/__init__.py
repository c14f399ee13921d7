"""What each kind of task writes into metadata.json: entries, their classes, checks, and the schema."""

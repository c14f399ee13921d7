"""The report of a failure to the project that can mend it: which tracker, what it asks for, filled in."""

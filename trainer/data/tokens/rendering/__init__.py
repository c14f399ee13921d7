"""Chat templates as programs of jinja, and marks around parts of what they write."""

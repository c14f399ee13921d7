"""The evidence as a folder of pages that need no network, no script and no server."""

"""Volume profiles of sessions, in whole numbers."""

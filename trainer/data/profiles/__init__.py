"""Volume profiles of sessions."""

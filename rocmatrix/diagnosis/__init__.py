"""Diagnosis of a log: signatures, a reader for logs of any size, and a ranking of likely causes."""

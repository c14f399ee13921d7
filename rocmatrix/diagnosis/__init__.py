"""Diagnosis of a failure's log: signatures, a reader for logs of any size, and a ranking of likely causes."""

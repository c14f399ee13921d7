"""The error codes of the host side, one module a topic; `rocmatrix.errors` joins them to its catalog."""

"""The error codes of the host side, one module a topic; `rocmatrix.runtime.errors` joins them to its catalog."""

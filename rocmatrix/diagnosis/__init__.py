"""From the text of a failure to its likely cause: signatures, a reader of logs of any size, and a ranking."""

"""Text of a shell: its lines, the words of its commands, the files that it writes, and names it never sets."""

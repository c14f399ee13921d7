"""What every part of the program stands on: locks of the kernel."""

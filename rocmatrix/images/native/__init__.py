"""Native environment on unusual machines: plain torch where the small one is out of reach, and the choice of Python."""

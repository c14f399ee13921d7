"""The native environment on unusual machines: plain torch where no small one is published, and the choice of Python."""

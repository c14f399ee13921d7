"""What runs inside an image while it is built: standard library, and the names of `rocmatrix.verify.devicecode`."""

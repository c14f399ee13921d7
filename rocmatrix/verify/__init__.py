"""Hold an image to bytes: wheels, sources, base and settings against the files that an image really has."""

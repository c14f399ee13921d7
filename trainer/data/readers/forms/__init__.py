"""How files are written: headers in many languages, dates of further programs, columns known by their cells."""

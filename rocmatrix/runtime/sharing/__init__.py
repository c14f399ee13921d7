"""Names of machines and people by the places where programs print them."""

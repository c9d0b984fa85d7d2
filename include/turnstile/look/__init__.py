"""A look at delivered files before the first week: what they are, and what mends them."""

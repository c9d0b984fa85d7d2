"""Files as they arrive: fetched, complete, delivered again, and the first look at them."""

"""The draw: charge, noise, store, seal; and what it is of."""

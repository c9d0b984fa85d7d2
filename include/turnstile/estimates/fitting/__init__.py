"""Ways to fit noisy numbers, and what is known of their errors: arrays in, arrays out, pure."""

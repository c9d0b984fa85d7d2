"""Tried before any charge, on made-up records and zeros: canaries, small worlds, rehearsals."""

"""Made-up weeks of data in the shape of the real feeds, because nobody can download trips.

Seeded: the same seed, week and number of rows make the same bytes. Nothing here is noise in the
sense of privacy, and nothing here is drawn from real rows; only shares and totals are calibrated,
each to a published figure that is cited beside it.
"""

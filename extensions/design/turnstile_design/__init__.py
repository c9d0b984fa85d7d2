"""Private planning reports and comparisons of designs, for those who write a programme."""

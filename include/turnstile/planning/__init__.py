"""Private planning reports: exact tables for those who design a programme. Nothing leaves."""

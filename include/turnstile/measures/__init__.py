"""What a table of a programme measures: one record a measure, and nobody else names one."""

"""One week in numbers and pictures: totals by place, time and day with their errors, and shapes."""

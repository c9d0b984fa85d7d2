"""`explore.html`: places, weeks and changes of a programme to look at, from published numbers."""

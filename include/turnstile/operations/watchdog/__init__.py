"""Who is told what: alerts and their delivery, the watch over runs, figures for monitoring."""

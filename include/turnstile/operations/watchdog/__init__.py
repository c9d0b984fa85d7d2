"""Who is told what: the watch over runs, alerts and their delivery, figures for monitoring."""

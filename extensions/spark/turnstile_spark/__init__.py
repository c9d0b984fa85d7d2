"""Trips counted on Spark, for those whose weeks outgrow one machine."""

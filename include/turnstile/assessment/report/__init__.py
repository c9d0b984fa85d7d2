"""The assessment as JSON and as a page."""

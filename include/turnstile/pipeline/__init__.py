"""The steps of a week: the only room that knows all rooms below it."""

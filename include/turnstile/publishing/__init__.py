"""What an outsider gets: labelled tables, the release card, the package and its manifest."""

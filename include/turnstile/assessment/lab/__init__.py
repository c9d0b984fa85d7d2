"""Known-bad baselines, defeated one by one. Nothing in here can publish anything."""

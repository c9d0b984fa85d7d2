"""One release as data: plan, zones, steps, sealed bytes, manifest."""

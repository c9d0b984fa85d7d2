"""What somebody who has only the published numbers can work out, with the exact formulas."""

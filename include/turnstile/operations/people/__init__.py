"""What people are shown before they say yes: approvals, corrections, previews, dossiers."""

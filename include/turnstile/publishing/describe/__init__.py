"""What describes a package to people and machines: its terms, its columns, its files, its past."""

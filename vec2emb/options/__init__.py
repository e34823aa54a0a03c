"""Options: their choices, their sizes, and the check of an argument's type."""

"""Tasks: from files and families, claimed and retired."""

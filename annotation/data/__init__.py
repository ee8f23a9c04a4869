"""What a finished session becomes: a review, rows of an export, or nothing any more."""

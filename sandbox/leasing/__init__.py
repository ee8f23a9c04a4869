"""Who holds a computer, who waits for one, and how it is taken back."""

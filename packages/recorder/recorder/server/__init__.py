"""HTTP to a Tandem server: sign-in, tasks, the text that one agrees to."""

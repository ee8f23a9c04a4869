"""What becomes of a recording: sign-in of recorders, upload, words, alignment, review, a Session."""

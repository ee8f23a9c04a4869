"""What people type on the training pages; the verbs check it again."""

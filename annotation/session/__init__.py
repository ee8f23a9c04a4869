"""One attempt at a task: its computer, its proposals, its decisions, its end."""

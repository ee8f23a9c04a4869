"""Whether a terminal asks for a password: its windows say nothing, its line does."""

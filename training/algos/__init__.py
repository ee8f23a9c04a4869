"""Pure functions of the trainers: no model, no row, no file."""

"""A game of LMGame-Bench that has no window of its own, with a window put in front of it."""

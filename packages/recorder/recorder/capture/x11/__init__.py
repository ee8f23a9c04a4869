"""Linux with an X server: the listeners of this system."""

"""The way of a picture from a computer to a browser, and of a hand back to it."""

"""What people's hands do, as canonical actions: typed, pressed, dragged."""

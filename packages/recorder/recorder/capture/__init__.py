"""What happens on the screen, at the hand and at the mouth, as events on one clock."""

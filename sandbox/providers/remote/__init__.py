"""Machines that somebody set up by hand: each runs the guest and a VNC server, and is lent out."""

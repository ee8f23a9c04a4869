"""Records a person's own work and spoken thoughts on their own computer."""

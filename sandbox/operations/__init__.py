"""What those who look after the machines see: the fleet, its figures."""

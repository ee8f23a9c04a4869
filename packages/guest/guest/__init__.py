"""The part of Tandem that runs inside a computer: it looks and acts, and knows nothing of leases' owners."""

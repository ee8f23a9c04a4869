"""Services that run in a computer, opened in the browser of whoever holds its lease.

Every lease and port has a host name of its own, so what the computer serves shares no origin, no
cookies and no storage with the product or with another lease.
"""

"""Episodes that a policy plays alone, by the thousand, never waiting for the slowest.

`rollouts` makes and steers a list of them, `episodes` hands them out and takes them back, `worker`
plays them. The rows are the truth: a worker may die at any line.
"""

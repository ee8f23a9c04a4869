"""The flywheel as rows: what an iteration is told, its phases, and the driver that turns it.

`config` and `schedule` say what happens when, `phases` how each phase begins and ends, `driver` goes
from one to the next, `decision` compares the candidate with M(t), `serving` keeps the policy server,
`iterations` are the verbs.
"""

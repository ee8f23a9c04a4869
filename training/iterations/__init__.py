"""The flywheel as rows: what an iteration is told, its phases, and the driver that turns it.

`config` and `schedule` say what happens when; `phases` lists the phases, `playing` and `learning` say
how each begins and ends; `driver` goes from one to the next; `decision` compares the candidate with
M(t); `serving` keeps the policy server; `iterations` are the verbs, `figures` what the pages show.
"""

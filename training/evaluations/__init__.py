"""How good a deployment is at a fixed list of tasks and seeds.

`suites` has the lists, `evaluations` begins one and reads it, `results` and `comparison` add its episodes
up with `statistics`, `exports` writes it down. The episodes themselves are a rollout's: see
`training.rollouts`.
"""

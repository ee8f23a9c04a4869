"""Reward models as rows, and how far each may be trusted.

`reward_models` makes and admits them, `labelled` draws episodes whose truth a verifier knows,
`calibrations` has a model judge these, `measures` says how often it was right.
"""

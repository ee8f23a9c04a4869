"""Local review: what was recorded is looked at, changed and confirmed before anything leaves."""

from recorder.review.confirm import confirm
from recorder.review.edits import EditError, Edits
from recorder.review.looking import Looking
from recorder.review.opening import review
from recorder.review.prepare import Reviewable, prepare
from recorder.review.server import Review

__all__ = ["EditError", "Edits", "Looking", "Review", "Reviewable", "confirm", "prepare", "review"]

"""What the guest refuses, each with the HTTP status and the code that the client maps back."""

from __future__ import annotations


class GuestError(Exception):
    """A request was refused; the message says why and what to do instead."""

    status = 400
    code = "bad_request"


class StaleLease(GuestError):
    """The caller's epoch is not the computer's."""

    status = 409
    code = "stale_lease"


class ActionFailed(GuestError):
    """The action can't be done; nothing else happened."""

    status = 422
    code = "action_failed"


class NotFound(GuestError):
    """No such route or file."""

    status = 404
    code = "not_found"

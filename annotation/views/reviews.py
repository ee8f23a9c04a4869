"""Reviewers' queue, and the page on which a session is judged."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from annotation import access
from annotation.data import reviews as verbs
from annotation.errors import NotYours, Refused
from annotation.forms import ReviewForm
from annotation.models import Review
from annotation.views.answers import conflict, members
from annotation.views.replay import replay, replay_context


@members(access.is_reviewer)
def reviews(request: HttpRequest) -> HttpResponse:
    """List the sessions that wait for this reviewer, oldest first, and the newest verdicts."""
    waiting = access.review_queue(request.user).annotate(step_count=Count("steps"))
    given = Review.objects.filter(reviewer_id=request.user.pk).select_related("session__task")
    context = {
        "waiting": waiting.select_related("task", "deployment", "author")[:100],
        "given": given.order_by("-at")[:10],
    }
    return render(request, "annotation/reviews.html", context)


@members(access.is_reviewer)
@require_http_methods(["GET", "POST"])
def review(request: HttpRequest, session_id: int) -> HttpResponse:
    """Show a session to its reviewer, and take the verdict."""
    session = access.review_queue(request.user).filter(pk=session_id).first()
    if session is None:
        seen = access.session_for(request.user, session_id)
        if request.method == "POST":
            return conflict(
                request, NotYours("this session does not wait for your verdict any more")
            )
        return replay(request, seen)
    context = replay_context(session)
    form = ReviewForm(session, context["steps"])
    if request.method == "POST" and form.read(request.POST):
        try:
            given = verbs.submit(
                session,
                reviewer=request.user,
                verdict=form.verdict,
                reasons=form.reasons,
                marks=form.marks,
            )
        except Refused as error:
            return conflict(request, error)
        messages.success(request, f"Session {session.pk} is {given.verdict}.")
        following = access.review_queue(request.user).exclude(pk=session_id).first()
        return redirect("review", following.pk) if following else redirect("reviews")
    for step in context["steps"]:
        step.typed = form.typed.get(step.index, {})
        step.command_error = form.errors.get(f"command-{step.index}", "")
    status = 400 if form.errors else 200
    return render(request, "annotation/review.html", {**context, "form": form}, status=status)

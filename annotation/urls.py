"""Addresses of the annotation product."""

from django.urls import path, register_converter

from annotation.views import (
    blobs,
    control,
    decisions,
    exports,
    home,
    queue,
    reviews,
    tasks,
    workbench,
)


class Sha256:
    """64 hexadecimal digits."""

    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(Sha256, "sha256")

urlpatterns = [
    path("", home.home, name="home"),
    path("queue/", queue.queue, name="queue"),
    path("queue/start/", queue.start, name="start"),
    path("sessions/<int:session_id>/", workbench.workbench, name="workbench"),
    path("sessions/<int:session_id>/panel/", workbench.panel, name="panel"),
    path("sessions/<int:session_id>/decide/", decisions.decide, name="decide"),
    path("sessions/<int:session_id>/propose/", decisions.propose, name="propose"),
    path("sessions/<int:session_id>/thought/", decisions.thought, name="thought"),
    path("sessions/<int:session_id>/draft/", decisions.draft, name="draft"),
    path("sessions/<int:session_id>/heartbeat/", decisions.heartbeat, name="heartbeat"),
    path("sessions/<int:session_id>/take-over/", control.take_over, name="take-over"),
    path("sessions/<int:session_id>/hand-back/", control.hand_back, name="hand-back"),
    path("sessions/<int:session_id>/finish/", control.finish, name="finish"),
    path("sessions/<int:session_id>/skip/", control.skip, name="skip"),
    path("sessions/<int:session_id>/report/", control.report, name="report"),
    path("sessions/<int:session_id>/resume/", control.resume, name="resume"),
    path("sessions/<int:session_id>/resubmit/", control.resubmit, name="resubmit"),
    path("reviews/", reviews.reviews, name="reviews"),
    path("reviews/<int:session_id>/", reviews.review, name="review"),
    path("tasks/", tasks.tasks, name="tasks"),
    path("tasks/import/", tasks.import_tasks, name="import-tasks"),
    path("tasks/<int:task_id>/", tasks.task, name="task"),
    path("tasks/<int:task_id>/retire/", tasks.retire, name="retire-task"),
    path("export/", exports.export, name="export"),
    path("blobs/<sha256:sha>.png", blobs.picture, name="picture"),
]

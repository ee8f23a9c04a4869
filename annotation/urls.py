"""Addresses of the annotation product."""

from django.urls import path, register_converter

from annotation.views import (
    blobs,
    contributing,
    contributing_queries,
    control,
    decisions,
    exports,
    home,
    queue,
    recorder_wheels,
    recordings,
    recordings_api,
    recordings_devices,
    recordings_review,
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


class RecordingName:
    """The recorder's random id: 32 hexadecimal digits."""

    regex = "[0-9a-f]{32}"
    to_python = Sha256.to_python
    to_url = Sha256.to_url


register_converter(Sha256, "sha256")
register_converter(RecordingName, "recording")

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
    path("contributing/", contributing.contributing, name="contributing"),
    path("contributing/settings/", contributing.settings, name="contributing-settings"),
    path("contributing/import/", contributing_queries.import_records, name="contributing-import"),
    path(
        "contributing/applications/new/",
        contributing.new_application,
        name="contributing-new-application",
    ),
    path(
        "contributing/applications/<int:application_id>/",
        contributing.application,
        name="contributing-application",
    ),
    path(
        "contributing/applications/<int:application_id>/delete/",
        contributing.delete_application,
        name="contributing-delete-application",
    ),
    path(
        "contributing/applications/<int:application_id>/functions/new/",
        contributing.new_function,
        name="contributing-new-function",
    ),
    path(
        "contributing/functions/<int:function_id>/",
        contributing.function,
        name="contributing-function",
    ),
    path(
        "contributing/functions/<int:function_id>/delete/",
        contributing.delete_function,
        name="contributing-delete-function",
    ),
    path(
        "contributing/functions/<int:function_id>/ask/",
        contributing_queries.ask,
        name="contributing-ask",
    ),
    path(
        "contributing/functions/<int:function_id>/queries/new/",
        contributing_queries.new_query,
        name="contributing-new-query",
    ),
    path(
        "contributing/queries/<int:query_id>/",
        contributing_queries.query,
        name="contributing-query",
    ),
    path(
        "contributing/queries/<int:query_id>/publish/",
        contributing_queries.publish,
        name="contributing-publish",
    ),
    path(
        "contributing/queries/<int:query_id>/retire/",
        contributing_queries.retire,
        name="contributing-retire",
    ),
    path("export/", exports.export, name="export"),
    path("blobs/<sha256:sha>.png", blobs.picture, name="picture"),
    path("recorder/", recorder_wheels.page, name="recorder"),
    path("recorder/requirements.txt", recorder_wheels.requirements, name="recorder-requirements"),
    path("recorder/wheels/<str:name>", recorder_wheels.wheel, name="recorder-wheel"),
    path("device/", recordings_devices.device, name="device"),
    path("device/<int:device_id>/revoke/", recordings_devices.revoke, name="revoke-device"),
    path("recordings/", recordings.recordings, name="recordings"),
    path("recordings/review/", recordings_review.waiting, name="recording-reviews"),
    path("recordings/<recording:name>/", recordings.recording, name="recording"),
    path("recordings/<recording:name>/download/", recordings.download, name="recording-zip"),
    path(
        "recordings/<recording:name>/sound/<sha256:sha>/", recordings.sound, name="recording-sound"
    ),
    path("recordings/<recording:name>/withdraw/", recordings.withdraw, name="withdraw-recording"),
    path("recordings/<recording:name>/retry/", recordings.retry, name="retry-recording"),
    path("recordings/<recording:name>/thoughts/", recordings.thoughts, name="recording-thoughts"),
    path("recordings/<recording:name>/review/", recordings_review.review, name="recording-review"),
    path("api/device/code", recordings_api.device_code, name="device-code"),
    path("api/device/token", recordings_api.device_token, name="device-token"),
    path("api/recorder/consent", recordings_api.consent, name="recorder-consent"),
    path("api/recorder/tasks", recordings_api.tasks, name="recorder-tasks"),
    path("api/recorder/tasks/next", recordings_api.next_task, name="recorder-next-task"),
    path("api/recordings/", recordings_api.announce, name="announce-recording"),
    path("api/recordings/<recording:name>", recordings_api.status, name="recording-status"),
    path(
        "api/recordings/<recording:name>/complete",
        recordings_api.complete,
        name="recording-complete",
    ),
    path(
        "api/recordings/<recording:name>/files/<sha256:sha>",
        recordings_api.file,
        name="recording-file",
    ),
]

"""What its person has confirmed goes to the server: by hash, and on where it stopped."""

from recorder.upload.sending import Progress, Sent, UploadError, send

__all__ = ["Progress", "Sent", "UploadError", "send"]

"""What its person has confirmed goes to the server: by hash, and on where it stopped."""

from recorder.upload.manifest import UploadError, confirmed
from recorder.upload.sending import Sent, send

__all__ = ["Sent", "UploadError", "confirmed", "send"]

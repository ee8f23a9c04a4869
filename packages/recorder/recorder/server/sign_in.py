"""Sign-in by a code that is confirmed in a browser: the device flow of RFC 8628."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

from recorder.server.client import Client, ServerError
from recorder.version import VERSION

_SLOWER_S = 5.0  # RFC 8628, 3.5: what slow_down adds
_LONGEST_S = 30 * 60.0
_WAYS = {
    "expired_token": "the code was not confirmed in time; begin again",
    "access_denied": "the sign-in was refused on the server's page",
}


def sign_in(
    client: Client,
    *,
    show: Callable[[str, str], None],
    wait: Callable[[float], None] = time.sleep,
) -> str:
    """Return a token once the person has confirmed the code; raises ServerError.

    `show(address, code)` tells the person where to confirm what.
    """
    # Its person knows it again by this; the computer's own name is nobody's business.
    name = f"Recorder {VERSION}, {platform.system()}"
    given = client.ask("POST", "/api/device/code", {"device_name": name})
    try:
        device, interval = str(given["device_code"]), float(given.get("interval", 5))
        show(str(given["verification_uri"]), str(given["user_code"]))
        left = min(float(given["expires_in"]), _LONGEST_S)
    except (KeyError, TypeError, ValueError) as error:
        raise ServerError(f"the server's code for this computer lacks {error}") from None
    deadline = time.monotonic() + left
    while time.monotonic() < deadline:
        wait(interval)
        try:
            answer = client.ask("POST", "/api/device/token", {"device_code": device})
            return str(answer["access_token"])
        except ServerError as error:
            if error.code == "slow_down":
                interval += _SLOWER_S
            elif error.code != "authorization_pending" and error.status != 0:
                raise ServerError(_WAYS.get(error.code, str(error)), code=error.code) from None
        except (KeyError, TypeError):
            raise ServerError("the server gives no access_token") from None
    raise ServerError(_WAYS["expired_token"], code="expired_token")

"""Chrome's network errors in the words of any fetch (DESIGN 7).

Owns the table.  Refuses to own: what follows.  Must never break: an error that is not in it still has an answer.
"""

from __future__ import annotations

import re
from typing import Final

from lanes.core.answer import Trouble
from lanes.core.pages import NotShown

_TABLE: Final = (
    (r"NAME_|DNS_", Trouble.DNS),
    (r"SSL_|CERT_|BAD_SSL|ECH_", Trouble.TLS),
    (r"CONTENT_DECODING", Trouble.ENCODING),
    (r"TOO_MANY_REDIRECTS", Trouble.HOPS),
    (
        r"INVALID_REDIRECT|UNSAFE_REDIRECT|UNKNOWN_URL_SCHEME|INVALID_URL|DISALLOWED_URL_SCHEME|UNSAFE_PORT",
        Trouble.BAD_URL,
    ),
    (r"BLOCKED_BY_CLIENT", Trouble.LEFT),
    (r"CONTENT_LENGTH|CHUNKED|INVALID_HTTP|RESPONSE_HEADERS|BLOCKED_BY_RESPONSE", Trouble.FRAMING),
    (r"CONNECTION_TIMED_OUT", Trouble.CONNECT),
    (r"TIMED_OUT", Trouble.TIMEOUT),
    (
        r"CONNECTION_REFUSED|CONNECTION_FAILED|ADDRESS_|INTERNET_|NETWORK_|PROXY_|TUNNEL_|SOCKS_|NO_SUPPORTED_PROXIES",
        Trouble.CONNECT,
    ),
)
"""First match wins; net_error_list.h of Chromium has them all."""


def not_shown(error: str, *, answered: bool) -> NotShown:
    """What `error` (net::ERR_...) means.  `answered`: a header had come, so that our line works, and a broken connection cut a body."""
    name = error.removeprefix("net::ERR_")
    trouble = next((trouble for pattern, trouble in _TABLE if re.match(pattern, name)), None)
    if trouble is None or (answered and trouble is Trouble.CONNECT):
        trouble = Trouble.FRAMING if answered else Trouble.RESET
    return NotShown(trouble, f"Chrome: {error}"[:200], line_proved=answered or "ALERT" in name)

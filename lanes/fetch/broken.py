"""How a fetch ends early inside `lanes.fetch`: raised deep down, turned into an `Answer` in one place (`lanes.fetch.http`).

Owns the three ways.  Refuses to own: the Answer.  Must never break: none of them leaves this package.
"""

from __future__ import annotations

from lanes.core.answer import Trouble
from lanes.fetch.permits import Wait


class Broken(Exception):
    """No usable answer: becomes `NoResponse`.  `detail` names no URL and quotes nothing that the Site sent."""

    def __init__(self, trouble: Trouble, detail: str, line_proved: bool = False) -> None:
        self.trouble = trouble
        self.detail = detail
        self.line_proved = line_proved
        super().__init__(detail)


class Refused(Exception):
    """The guard said no: becomes `Forbidden`."""

    def __init__(self, address: str) -> None:
        self.address = address
        super().__init__(address)


class Held(Exception):
    """A permit was not given: becomes `Postponed`."""

    def __init__(self, wait: Wait, address: str | None = None) -> None:
        self.wait = wait
        self.address = address
        super().__init__(wait.reason)

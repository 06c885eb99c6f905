"""Every error that Lanes raises for what we did wrong.  What a Site does is never one of these: that is an `Answer`."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=//)(?:[^/?#]*|[^/?#@:]*:.*)@|^[^/?#@:]*:(?!//).*@", re.DOTALL)
"""Up to the last @ of what may be a name and a password, however malformed the URL."""


class LanesError(Exception):
    """Base of all.  Its text names the thing and the remedy and is fit to be shown to the owner as it stands."""


class SettingsError(LanesError):
    """One or more environment variables are missing, unknown, deleted or malformed.  `problems` holds one line for each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class UnknownSeries(LanesError):
    """No Series has this key."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"There is no Series {key!r}. `lanes list` shows the keys.")


class UnknownSite(LanesError):
    """No Site of this name is in the registry.  `broken`: the owner has an own Site of that name, which cannot be used."""

    def __init__(self, name: str, known: tuple[str, ...], broken: str | None = None) -> None:
        self.name = name
        super().__init__(broken or f"There is no Site {name!r}. Registered: {', '.join(known)}.")


class UnknownReader(LanesError):
    """No Reader has this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no Reader {name!r}.")


class BadUrl(LanesError):
    """A URL that cannot be followed as a Series."""

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(f"{_USERINFO.sub('***@', url)!r} cannot be followed: {why}")


class StoreError(LanesError):
    """Postgres cannot be used as it is (wrong version, schema too old, no permission): the text says what to do."""


class DatabaseAway(LanesError):
    """Postgres does not answer (yet, or any more).  Whoever meets it waits and asks again."""

    def __init__(self, cause: str) -> None:
        lines = cause.strip().splitlines()
        super().__init__(f"Postgres does not answer: {lines[0] if lines else 'no reason given'}")


class DatabaseBusy(DatabaseAway):
    """Postgres answered that it cannot now: a deadlock, a lock that was not to be had, a statement that took too long.  It is asked again
    like one that is away, but that it was away says nothing about our own line."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        lines = cause.strip().splitlines()
        self.args = (f"Postgres is busy: {lines[0] if lines else 'no reason given'}",)


class SchemaReplaced(DatabaseAway):
    """The database was migrated for another edition of this program while it ran."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.args = (
            f"The database is of another edition of Lanes, restart this process: {cause.strip().splitlines()[0]}",
        )

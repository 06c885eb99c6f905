"""Lanes: a self-hosted, polite poller of serial publications.  The map, a sentence per module, arrows pointing down only:

cli        argument parsing and printing; the place where parts meet
lane       a process per Site: claims for idle slots, sleeps, ends in good order
upkeep     the process that tells of what comes of age and forgets what is old, each duty isolated
poll       one Poll: fetch, read, decide, settle
trying     one URL tried by the owner: as a Poll, and nothing of it stored
browser    a page asked of the browser by a row, and how long it is waited for
hand       the permits of one Poll in hand, and where it went
fetch      urllib3 behind the guard and the permits; an Answer value comes back whatever a Site does
store      the only door to Postgres: named SQL, the deciding functions (store/sql/rules), verbs that speak core values
sites      the registry, and bytes -> Chapters, pure
core       every decision, pure: pace, schedule, outcome, settlement, chapters, why, audit
metrics    one table of metrics, and the endpoint of /metrics and /health
settings   one table of settings, environment only
postgres   the embedded default database in the foreground
"""

from importlib.metadata import version

__version__ = version("lanes")
PROJECT_PAGE = "https://lanes.example"  # stands in every User-Agent: the project's own page, once it has a public one

"""Every command, its arguments, and an example of each.

Owns the words that are typed, and what is said where they are wrong.  Refuses to own: what they do (`run` names the function, imported
when asked for).
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, Final

from lanes.cli import arguments, site_arguments
from lanes.errors import LanesError

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNKNOWN: Final = 3
AWAY: Final = 4
STOPPED: Final = 130

CODES: Final = f"""\
exit codes:
  {DONE}    done
  {FAILED}    it failed, or `audit` found an offence, `check` asked for what is not polled, `sites verify` missed a landmark
  {USAGE}    wrong arguments, settings or installation, or a URL that cannot be followed: trying again as it is will not help
  {UNKNOWN}    what was named does not exist
  {AWAY}    the database is away or not ready yet, or a gate is closed to `try`, or no Lane runs for `sites verify`: try again later
  {STOPPED}  stopped by Ctrl-C

KEY is the key of a Series, as `lanes list` shows it, or its URL.  Times are shown in your own zone; --json gives UTC, and durations
in seconds; an error is then {{"error": ...}} on standard output too.  Of URLs user and password are shown as ***, a query as ?...; where
two Series differ in these alone, a mark at the end of one KEY tells them apart.  Settings come from the environment:
deploy/lanes.env.example explains each."""

_EACH_SITE: Final = "of this Site alone"


class NotMeant(LanesError):
    """The arguments ask for more than their owner confirmed."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command and its arguments.  SystemExit, with the usage of that very command, where they are wrong."""
    parser = build()
    if not (sys.argv[1:] if argv is None else argv):
        parser.print_help(sys.stderr)
        raise SystemExit(USAGE)
    asked, rest = parser.parse_known_args(argv)
    if rest:
        asked.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return asked


def build() -> argparse.ArgumentParser:
    """The whole parser."""
    parser = argparse.ArgumentParser(
        prog="lanes",
        description="Follows serial publications politely and tells you of new Chapters.",
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    _following(commands)
    _owning(commands)
    _asking(commands)
    site_arguments.add(commands, _command)
    _processes(commands)
    return parser


def _command(
    commands: Any, name: str, run: str, does: str, example: str, *, json: bool = False
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog="example:\n" + textwrap.indent(textwrap.dedent(example).strip(), "  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, parser=parser)
    if json:
        parser.add_argument("--json", action="store_true", help="facts for a program instead of a table")
    return parser


def _following(commands: Any) -> None:
    run = "lanes.cli.following:"
    add = _command(
        commands,
        "add",
        run + "add",
        "follow a Series by its URL: a feed, or a web page that names its feed",
        "lanes add https://serial.example.org/feed\nlanes add --wait 30 https://serial.example.org https://comic.example.org/rss",
        json=True,
    )
    add.add_argument("urls", nargs="+", metavar="URL")
    add.add_argument(
        "--wait",
        nargs="?",
        type=arguments.seconds,
        const=30.0,
        metavar="SECONDS",
        help="wait for the first Poll, and fail when it does (without SECONDS: 30; by default 10 at a terminal, without failing)",
    )
    taken = _command(
        commands,
        "import",
        "lanes.cli.importing:run",
        "follow every feed of an OPML file",
        "lanes import --dry-run subscriptions.opml\nlanes import subscriptions.opml\ncat subscriptions.opml | lanes import -",
        json=True,
    )
    taken.add_argument(
        "file",
        metavar="FILE",
        help=f"an OPML file; - reads standard input. Exits {USAGE} where an outline cannot be followed",
    )
    taken.add_argument("--dry-run", action="store_true", help="say what would happen and change nothing")
    check = _command(
        commands,
        "check",
        run + "check",
        "ask for one Poll of a Series sooner than its schedule; its Site's pace still holds",
        "lanes check serial-example-org",
        json=True,
    )
    check.add_argument("keys", nargs="+", metavar="KEY")
    for name, does in (("pause", "stop polling Series, or a whole Lane, until `resume`"), ("resume", "end a pause")):
        command = _command(
            commands,
            name,
            f"{run}{name}",
            does,
            f"lanes {name} serial-example-org\nlanes {name} --site feeds",
            json=True,
        )
        what = command.add_mutually_exclusive_group(required=True)
        what.add_argument("keys", nargs="*", default=[], metavar="KEY")
        what.add_argument("--site", help="the whole Lane of this Site")
    remove = _command(
        commands,
        "remove",
        run + "remove",
        "drop your Bookmark: the Series and its Chapters are kept, but no longer polled",
        "lanes remove serial-example-org\nlanes remove --purge --yes serial-example-org",
        json=True,
    )
    remove.add_argument("keys", nargs="+", metavar="KEY")
    remove.add_argument("--purge", action="store_true", help="delete the Series with its Chapters as well")
    remove.add_argument("--yes", action="store_true", help="do not ask before a --purge")


def _owning(commands: Any) -> None:
    run = "lanes.cli.owning:"
    slow = _command(
        commands,
        "slow",
        run + "slow",
        "ask a host, or a Site, no more often than this, whatever its own pace; alone: show what is slowed",
        "lanes slow serial.example.org 1h\nlanes slow serial.example.org 2m30s\nlanes slow serial.example.org --undo\nlanes slow",
        json=True,
    )
    slow.add_argument(
        "place", nargs="?", metavar="HOST|SITE", help="a host by its name (or a URL there), or a whole Site"
    )
    slow.add_argument(
        "at_least",
        nargs="?",
        type=arguments.word,
        metavar="DURATION",
        help="from one request to the next, such as 90s, 2m30s or 1h; 24h at most; whatever is slower stays",
    )
    slow.add_argument("--undo", action="store_true", help="end it")
    block = _command(
        commands,
        "block",
        run + "block",
        "ask a host nothing any more, from this moment on; alone: show what is blocked",
        "lanes block serial.example.org\nlanes block serial.example.org --undo\nlanes block",
        json=True,
    )
    block.add_argument(
        "place", nargs="?", type=arguments.host, metavar="HOST", help="a host by its name, or a URL there"
    )
    block.add_argument("--undo", action="store_true", help="end it; a wait that stood there before stands again")
    retire = _command(
        commands,
        "retire",
        run + "retire",
        "give a Series up and tell its Readers; it stays so until you `revive` it (`pause` it to end even its weekly look)",
        'lanes retire serial-example-org\nlanes retire --reason "its author ended it" serial-example-org',
        json=True,
    )
    retire.add_argument("--reason", default="the owner gave it up", metavar="TEXT", help="what its Readers are told")
    revive = _command(
        commands,
        "revive",
        run + "revive",
        "take back a Series that was given up: all its counters at zero, looked at now; undoes a move to another Series",
        "lanes revive serial-example-org",
        json=True,
    )
    for command in (retire, revive):
        command.add_argument("keys", nargs="+", metavar="KEY")
    back = _command(
        commands,
        "back",
        run + "back",
        "return a Series that moved to the URL it had before, and keep it there",
        "lanes back serial-example-org",
        json=True,
    )
    back.add_argument("key", metavar="KEY")


def _asking(commands: Any) -> None:
    run = "lanes.cli.asking:"
    listed = _command(
        commands,
        "list",
        run + "series",
        "show the Series, all or some",
        "lanes list\nlanes list --failing\nlanes list --json --whole-urls lantern",
        json=True,
    )
    listed.add_argument("words", nargs="?", metavar="TEXT", help="with this text in key, title or URL")
    listed.add_argument("--site", help=_EACH_SITE)
    listed.add_argument("--failing", action="store_true", help="whose last Poll failed")
    listed.add_argument(
        "--held",
        action="store_true",
        help="kept from being polled by more than their turn, such as a wait or a refusal",
    )
    listed.add_argument(
        "--whole-urls",
        action="store_true",
        help="show URLs whole; without it user and password are shown as ***, a query as ?...",
    )
    chapters = _command(
        commands,
        "chapters",
        run + "chapters",
        "show the newest Chapters, of one Series or of all",
        "lanes chapters\nlanes chapters serial-example-org -n 100",
        json=True,
    )
    polls = _command(
        commands,
        "polls",
        run + "polls",
        "show the poll record, a line for each request, newest first",
        "lanes polls\nlanes polls serial-example-org -n 5 --json",
        json=True,
    )
    for command in (chapters, polls):
        command.add_argument("key", nargs="?", metavar="KEY")
        command.add_argument(
            "-n", dest="most", type=arguments.count, default=25, metavar="N", help="at most this many (default 25)"
        )
    told = "lanes.cli.telling:"
    incidents = _command(
        commands,
        "incidents",
        told + "incidents",
        "show the troubles of our line and of Sites, open ones first, with how many Series were spared",
        "lanes incidents\nlanes incidents --all --json",
        json=True,
    )
    incidents.add_argument(
        "--all", action="store_true", help="without it: the open ones, and the newest up to 25 in all"
    )
    notices = _command(
        commands,
        "notices",
        told + "notices",
        "show what Readers and you were told or are owed, newest first",
        "lanes notices\nlanes notices --owed --reader owner -n 100",
        json=True,
    )
    notices.add_argument("--owed", action="store_true", help="not delivered yet")
    notices.add_argument("--reader", metavar="NAME", help="to this Reader alone")
    notices.add_argument(
        "-n", dest="most", type=arguments.count, default=25, metavar="N", help="at most this many (default 25)"
    )
    _command(
        commands,
        "status",
        "lanes.cli.status:status",
        "show how every Lane stands, what troubles there are, and the totals",
        "lanes status\nlanes status --json",
        json=True,
    )
    why = _command(
        commands,
        "why",
        run + "why",
        "say why a Series is not being polled just now, and until when",
        "lanes why serial-example-org",
        json=True,
    )
    why.add_argument("keys", nargs="+", metavar="KEY")


def _processes(commands: Any) -> None:
    run = "lanes.cli.processes:"
    lane = _command(
        commands, "lane", run + "lane", "run the Lane of a Site until SIGTERM (supervisord does)", "lanes lane feeds"
    )
    lane.add_argument("site", metavar="SITE")
    _command(
        commands,
        "upkeep",
        run + "upkeep",
        "tell of what comes of age and forget what is old, until SIGTERM (supervisord does)",
        "lanes upkeep",
    )
    _command(
        commands,
        "postgres",
        run + "postgres",
        "run the embedded database in the foreground (supervisord does); ends at once where LANES_DATABASE_URL names another",
        "lanes postgres",
    )
    migrate = _command(
        commands,
        "migrate",
        run + "migrate",
        "bring the database up to what this version needs",
        "lanes migrate\nlanes migrate --wait",
    )
    migrate.add_argument("--wait", action="store_true", help="wait for a database that is away")
    audit = _command(
        commands,
        "audit",
        run + "audit",
        "prove from the poll record that no pace was ever broken; fails naming the first offence",
        "lanes audit\nlanes audit --since 2d",
        json=True,
    )
    audit.add_argument(
        "--since",
        type=arguments.duration,
        metavar="AGO",
        help="look back this far, such as 30m, 12h or 2d (by default over the whole record)",
    )
    _command(
        commands,
        "demo",
        "lanes.cli.demo:run",
        "poll a small internet on loopback and watch Chapters arrive",
        "lanes demo",
    )
    _command(commands, "version", run + "version", "print the version", "lanes version", json=True)

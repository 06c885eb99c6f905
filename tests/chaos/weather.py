"""How a host misbehaves for a while.

Owns the kinds of trouble and how often each comes.  Refuses to own: when (`storm`).  Must never break: no wait that a host names is longer
than 20 s, for the calm after the storm is not to be waited for in real months; and each trouble can be ended at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.smallnet import NOTHING_HERE, Host, Step, ok, redirect, reset, status
from tests.smallnet.feeds import Request

from .world import World

Heal = Callable[[], None]
Begin = Callable[[World, Host], Heal]
LONGEST_WAIT = 20
HTML = "<!doctype html><html><head><title>Sorry</title></head><body><p>We are moving house today.</p></body></html>"


def pick(random: Random) -> str:
    """A kind, by how often it comes."""
    return random.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]


def _down(world: World, host: Host) -> Heal:
    host.down()
    return host.up


def _black_hole(world: World, host: Host) -> Heal:
    host.black_hole()
    return host.up


def _hangs_up(world: World, host: Host) -> Heal:
    host.hang_up()
    return lambda: None


def _hold(world: World, host: Host) -> Heal:
    return host.hold("*").release


def _scripted(world: World, host: Host, path: str, answer: Callable[[Request], Step] | Step) -> Heal:
    host.script(path, answer)
    return lambda: host.unscript(path)


def _error(world: World, host: Host) -> Heal:
    return _scripted(world, host, "*", status(world.random.choice((500, 502, 503))))


def _asks_to_wait(world: World, host: Host) -> Heal:
    """429 or 503, mostly with Retry-After."""
    code = world.random.choice((429, 429, 503))
    seconds = world.random.randint(1, LONGEST_WAIT) if world.random.random() < 0.8 or code == 503 else None
    step = status(code, retry_after=seconds)
    return _scripted(world, host, "*", lambda request: world.tell(host, request, step, seconds))


def _refuses(world: World, host: Host) -> Heal:
    """All but the robots.txt, or one URL."""
    everywhere = world.random.random() < 0.4
    path = "*" if everywhere else world.random.choice(list(host.feeds))
    return _scripted(world, host, path, lambda request: world.tell(host, request, status(403), None))


def _redirects(world: World, host: Host) -> Heal:
    path = world.random.choice(list(host.feeds))
    return _scripted(world, host, path, redirect(world.mirrored(host, path), world.random.choice((301, 302))))


def _loops(world: World, host: Host) -> Heal:
    """To itself, or there and back again."""
    path = world.random.choice(list(host.feeds))
    if world.random.random() < 0.5:
        return _scripted(world, host, path, redirect(host.url(path), 307))
    other = world.random.choice([each for each in world.hosts if each is not host])
    back = f"/back/{host.key}{path}"
    other.answer_with(back, lambda _: redirect(host.url(path), 307))
    return _scripted(world, host, path, redirect(other.url(back), 307))


def _usual(host: Host, request: Request) -> Step:
    feed = host.feeds.get(request.path)
    return NOTHING_HERE if feed is None else feed(request)


def _truncates(world: World, host: Host) -> Heal:
    def cut(request: Request) -> Step:
        usual = _usual(host, request)
        return usual if usual.status != 200 else usual.cut_after(len(usual.body) // 2)

    return _scripted(world, host, "*", cut)


def _drips(world: World, host: Host) -> Heal:
    every = world.random.choice((0.1, 0.3, 2.0, 5.0))

    def drip(request: Request) -> Step:
        usual = _usual(host, request)
        return usual.dripping(every, max(1, len(usual.body) // 20))

    return _scripted(world, host, "*", drip)


def _slow(world: World, host: Host) -> Heal:
    delay = world.random.uniform(0.3, 25)
    return _scripted(world, host, "*", lambda request: _usual(host, request).after(delay))


def _resets(world: World, host: Host) -> Heal:
    return _scripted(world, host, "*", reset())


def _talks_nonsense(world: World, host: Host) -> Heal:
    """An HTML page or an empty body under 200, a 404, or a 304 that nobody asked for."""
    step = world.random.choice((ok(HTML, "text/html"), ok(""), NOTHING_HERE, status(304)))
    return _scripted(world, host, "*", step)


KINDS: dict[str, tuple[float, Begin]] = {
    "down": (3, _down),
    "black-hole": (2, _black_hole),
    "hangs-up": (3, _hangs_up),
    "hold": (3, _hold),
    "error": (3, _error),
    "asks-to-wait": (4, _asks_to_wait),
    "refuses": (2, _refuses),
    "redirects": (5, _redirects),
    "loops": (2, _loops),
    "truncates": (2, _truncates),
    "drips": (2, _drips),
    "slow": (2, _slow),
    "resets": (2, _resets),
    "nonsense": (2, _talks_nonsense),
}

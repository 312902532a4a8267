"""A GitHub of our own for tests: both APIs, the clones, the limits, and everything that goes wrong there.

    from tests.github import Clock, Faults, GitHub, Limits, Token
    from tests.github.faults import QUICK, primary, secondary, slow
    from tests.github.generate import make_world       # any number of pull requests, every oddity, from a seed
    from tests.github.handmade import Workshop, sample_world      # real code, made commit by commit

    world = make_world(tmp_path, seed=7, pull_requests=1000)      # ada/lib; or sample_world(tmp_path): ada/greet
    token = Token("ghp_x", limits=Limits(points=200, concurrent=4, window=2))     # a plain string takes the defaults
    plan = Faults.seeded(3, rate=0.2)                     # names=QUICK leaves out those that ask for a wait of a minute
    plan = Faults().once("http-502", times=3).once(secondary(429, 1), after=5).always(slow(0.1))        # or by a script
    plan.pages_above(25).at(40, lambda hub: hub.world.rename("ada/lib", "ada/core"))
    with GitHub(world, tokens=[token], faults=plan, clock=Clock(speed=60)) as hub:
        hub.url                  # REST; GraphQL at /graphql; clones at /ada/lib.git; the default token is "ghp_reader"
        hub.enterprise_url       # the same as an Enterprise server: /api/v3, GraphQL at /api/graphql
        hub.requests             # Asked(number, method, path, token, kind, status, points, cost, fault, at), in order
        hub.asked("graphql")     # its lines of one kind: rest, graphql, git, free
        hub.account("ghp_x")     # used points and requests, most_at_once
        hub.faults.struck        # which faults struck how often
        hub.clock.advance(60)    # hand this to the client as its sleep, and no test waits
    assert hub.violations == []  # asked while nothing remained, too early, too many at once; unanswered fields

Seeded faults strike one and the same request twice in a row at most (`in_a_row`); a clone is three requests.
Wrong credentials, apps with installations (apps.App), private, archived, blocked (451), renamed and vanished
repositories are made by changing the world or the tokens.
A request that the emulator has no answer for is noted among the violations, so nothing is passed over in silence.
The world is plain data: tests change it at will, also while the server runs. GitHub's schemas are fetched from npm
when first needed and kept in the user's cache (see packages.py).
"""

from tests.github.budget import Clock, Limits, Token
from tests.github.faults import FAULTS, Faults
from tests.github.server import GitHub
from tests.github.world import World

__all__ = ["FAULTS", "Clock", "Faults", "GitHub", "Limits", "Token", "World"]

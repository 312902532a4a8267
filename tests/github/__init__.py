"""An emulated GitHub for tests: REST and GraphQL, clones, rate limits, and server faults on demand.

    from tests.github import AccessToken, FaultPlan, GitHub, ServerClock, TokenLimits
    from tests.github.faults import QUICK, make_delay, make_primary_limit, make_secondary_limit
    from tests.github.generate import make_world       # any number of pull requests with all oddities, from a seed
    from tests.github.handmade import RepositoryBuilder, make_sample_world      # real code, built commit by commit

    world = make_world(tmp_path, seed=7, pull_requests=1000)      # ada/lib; or make_sample_world(tmp_path): ada/greet
    token = AccessToken("ghp_x", limits=TokenLimits(points=200, concurrent=4, window=2))     # or a plain string
    plan = FaultPlan.from_seed(3, rate=0.2)               # names=QUICK omits faults that require a wait of a minute
    plan = FaultPlan().add_once("http-502", times=3).add_once(make_secondary_limit(429, 1), after=5)       # scripted
    plan.add_always(make_delay(0.1))
    plan.fail_large_pages(25).schedule_event(40, lambda hub: hub.world.rename("ada/lib", "ada/core"))
    with GitHub(world, tokens=[token], faults=plan, clock=ServerClock(speed=60)) as hub:
        hub.url                  # REST; GraphQL at /graphql; clones at /ada/lib.git; the default token is "ghp_reader"
        hub.enterprise_url       # the same as an Enterprise server: /api/v3, GraphQL at /api/graphql
        hub.requests             # log of RequestLogEntry in order
        hub.list_requests("graphql")     # entries of one kind: rest, graphql, git, free
        hub.account("ghp_x")     # used points and requests, most_at_once
        hub.faults.counts        # number of occurrences of each fault
        hub.clock.advance(60)    # pass this to the client as its sleep, so that no test waits
    assert hub.violations == []  # requests without remaining budget, too early, or too many at once; unanswered fields

Seeded faults affect the same request at most twice in a row (`in_a_row`); a clone is three requests.
Wrong credentials, apps with installations (apps.ServerApp), private, archived, blocked (451), renamed and removed
repositories are made by changing the world or the tokens.
A request that the emulator cannot answer is recorded as a violation, so no gap remains unnoticed.
The world is plain data: tests change it at any time, even while the server runs. GitHub's schemas are fetched from npm
on first use and cached for the user (see packages.py).
"""

from tests.github.faults import FAULTS, FaultPlan
from tests.github.rate_limits import AccessToken, ServerClock, TokenLimits
from tests.github.server import GitHub
from tests.github.world import World

__all__ = ["FAULTS", "AccessToken", "FaultPlan", "GitHub", "ServerClock", "TokenLimits", "World"]

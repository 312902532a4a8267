"""Measure the gateway: `python -m benchmarks.gateway [--rounds N] [--streams N] [--no-litellm] [--json] [--check]`.

A fast model server, the gateway in front of it and LiteLLM's proxy in front of it run at once, one process each, and
are measured in turn, round by round, by the same client on the same machine:

- latency: seconds of plain requests of `--kilobytes`, sent by 1 and by 8 clients; added is the difference to the model
  alone, median and 99th percentile of each round, and of these the median over the rounds;
- throughput: answered requests a second with 32 clients;
- streams: `--streams` at once whose tokens trickle; time to the first token, and the memory and CPU of the gateway.

The gateway records every exchange; LiteLLM's proxy records nothing. With `--check` the exit code is 1 when a goal is
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.gateway.load import LoadTarget, build_request, measure_latency, measure_streams, measure_throughput
from benchmarks.gateway.servers import (
    raise_file_limit,
    read_cpu,
    read_memory,
    run_gateway,
    run_litellm,
    run_model,
)
from benchmarks.page_table import write_table

CLIENTS = (1, 8)
SATURATING_CLIENTS = 32
MOST_ADDED = 0.003
"""Goal: seconds that a plain request may take longer at the median, with one client."""
LEAST_RATIO = 5.0
"""Goal: throughput as a multiple of LiteLLM's."""
ALONE, GATEWAY, LITELLM_NAME = "model alone", "gateway", "LiteLLM"
Samples = dict[tuple[str, str], list[float]]


def parse_options(arguments: list[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="Measure latency, throughput and streams of the gateway.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=300, help="requests per client count and round")
    parser.add_argument("--kilobytes", type=int, default=16, help="size of a plain request")
    parser.add_argument("--seconds", type=float, default=4.0, help="of throughput per round")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=40, help="of a stream")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two tokens of a stream")
    parser.add_argument("--no-litellm", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--page", type=Path, help="a page into which the result is written, such as docs/guide/agents/gateway.md"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    return parser.parse_args(arguments)


def compute_percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def measure_round(targets: list[LoadTarget], options: argparse.Namespace, samples: Samples) -> None:
    """Measure latency and throughput of every target once, in turn."""
    for clients in CLIENTS:
        for target in targets:
            requests = [build_request(target, options.kilobytes) for _ in range(options.requests)]
            seconds = await measure_latency(target, requests, clients)
            samples[target.name, f"median at {clients}"].append(statistics.median(seconds))
            samples[target.name, f"p99 at {clients}"].append(compute_percentile(seconds, 0.99))
    for target in targets:
        rate = await measure_throughput(target, options.kilobytes, SATURATING_CLIENTS, options.seconds)
        samples[target.name, "requests/s"].append(rate)


def summarise(samples: Samples) -> dict[str, dict[str, float]]:
    """Return name -> measure -> median over the rounds; added latencies are differences within a round."""
    rows: dict[str, dict[str, float]] = defaultdict(dict)
    for (name, measure), values in samples.items():
        rows[name][measure] = statistics.median(values)
        base = samples[ALONE, measure]
        if measure != "requests/s":
            added = [value - alone for value, alone in zip(values, base, strict=True)]
            rows[name][f"added {measure}"] = statistics.median(added)
    return rows


async def measure_trickle(target: LoadTarget, options: argparse.Namespace) -> dict[str, Any]:
    """Return what became of the streams of one target."""
    ramp = options.tokens * options.pause * 0.4
    measures = await measure_streams(target, options.streams, options.tokens, options.pause, ramp)
    whole = sum(tokens == options.tokens for tokens in measures.tokens)
    return {
        "finished": whole,
        "failed": options.streams - whole,
        "first token median": statistics.median(measures.first_token),
        "first token p99": compute_percentile(measures.first_token, 0.99),
    }


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run all servers and measure them."""
    samples: Samples = defaultdict(list)
    result: dict[str, Any] = {"load before": os.getloadavg()[0], "processors": os.cpu_count()}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        model = stack.enter_context(run_model())
        gateway, process = stack.enter_context(run_gateway(model, folder / "logs", options.streams + 64))
        targets = [model, gateway]
        if not options.no_litellm:
            try:
                targets.append(stack.enter_context(run_litellm(model, folder, find_port())))
            except OSError as error:
                result["litellm"] = f"skipped: {error}"
        for target in targets:
            await measure_latency(target, [build_request(target, options.kilobytes) for _ in range(50)], 8)
        for _ in range(options.rounds):
            await measure_round(targets, options, samples)
        result["rows"] = summarise(samples)
        if options.streams:
            result["streams"] = {}
            for target in (model, gateway):
                cpu = read_cpu(process.pid)
                result["streams"][target.name] = await measure_trickle(target, options)
            result["streams"][GATEWAY] |= {
                "memory MB": read_memory(process.pid) >> 20,
                "cpu seconds": read_cpu(process.pid) - cpu,
                "recorded": process.get_usage("bench").requests,
            }
    return result | {"goals": judge_goals(result), "load after": os.getloadavg()[0]}


def judge_goals(result: dict[str, Any]) -> dict[str, bool | None]:
    """Return goal -> whether it is reached; None where it was not measured."""
    rows, streams = result["rows"], result.get("streams")
    ratio = _compute_ratio(rows) if LITELLM_NAME in rows else None
    return {
        "at most 3 ms added at the median": rows[GATEWAY]["added median at 1"] <= MOST_ADDED,
        "5 times LiteLLM's throughput": None if ratio is None else ratio >= LEAST_RATIO,
        "every stream at once finishes": None if not streams else streams[GATEWAY]["failed"] == 0,
    }


def find_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def render_result(result: dict[str, Any]) -> str:
    """Return what was measured as Markdown."""
    headings = [f"added {what} at {n}, ms" for n in CLIENTS for what in ("median", "p99")]
    lines = [f"| | {' | '.join(headings)} | requests/s |", f"|---{'|---:' * (len(headings) + 1)}|"]
    rows = result["rows"]
    for name, row in rows.items():
        added = [f"{row[f'added {what} at {n}'] * 1000:.2f}" for n in CLIENTS for what in ("median", "p99")]
        shown = ["-"] * len(added) if name == ALONE else added
        lines.append(f"| {name} | {' | '.join(shown)} | {row['requests/s']:,.0f} |")
    lines += ["", f"The model alone takes {rows[ALONE]['median at 1'] * 1000:.2f} ms at the median with one client."]
    if LITELLM_NAME in rows:
        lines.append(f"The gateway's throughput is {_compute_ratio(rows):.1f} times LiteLLM's.")
    lines += [result["litellm"]] if "litellm" in result else []
    for name, row in result.get("streams", {}).items():
        figures = ", ".join(f"{key} {_format(value)}" for key, value in row.items())
        lines.append(f"\nStreams, {name}: {figures}.")
    lines.append("")
    for goal, is_reached in result["goals"].items():
        lines.append(f"- {'not measured' if is_reached is None else 'reached' if is_reached else 'missed'}: {goal}")
    load = f"load {result['load before']:.1f} before and {result['load after']:.1f} after"
    return "\n".join(
        [*lines, "", f"Machine: {result['processors']} processors, {load}; what others ran is in the load.", ""]
    )


def _compute_ratio(rows: dict[str, dict[str, float]]) -> float:
    return rows[GATEWAY]["requests/s"] / rows[LITELLM_NAME]["requests/s"]


def _format(value: float) -> str:
    return f"{value:.3f} s" if isinstance(value, float) else f"{value:,}"


def main(arguments: list[str]) -> int:
    """Measure, print and return the exit code."""
    options = parse_options(arguments)
    raise_file_limit()
    result = uvloop.run(measure(options))
    print(json.dumps(result) if options.json else render_result(result))
    if options.page:
        write_table(options.page, "benchmarks.gateway", render_result(result))
    return 1 if options.check and False in result["goals"].values() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

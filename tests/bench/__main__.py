"""`make bench`: prints the table of figures and writes it into docs/measurements.md.

python -m tests.bench              all
python -m tests.bench --quick      shorter runs, printed only
python -m tests.bench --only steady,search
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil

from strandline.stack import SERVICES, NativeStack
from tests.bench import figures
from tests.bench.figures import Figure
from tests.services import native_stack

PAGE = Path(__file__).parents[2] / "docs" / "measurements.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"

WORKERS = int(os.environ.get("STRANDLINE_BENCH_WORKERS", "2"))
"""As many as cores of the machine that the figures are for."""

Measure = Callable[[NativeStack], Awaitable[list[Figure]]]


def measures(scale: float) -> dict[str, Measure]:
    """Name → what is run, in the order of the table."""

    def count(n: int) -> int:
        return max(60, int(n * scale))

    return {
        "latency": figures.latencies,
        "steady": lambda s: figures.steady(s, datasets=64, count=count(12000), offered=300, workers=WORKERS),
        "steady1": lambda s: figures.steady(s, datasets=1, count=count(6000), offered=250, workers=WORKERS),
        "backlog": lambda s: figures.backlog(s, datasets=64, count=count(10000), workers=WORKERS),
        "backlog1": lambda s: figures.backlog(s, datasets=1, count=count(5000), workers=WORKERS),
        "hop": lambda s: figures.hop(s, count=count(5000), workers=WORKERS),
        "slow1": lambda s: figures.slow_model(s, datasets=1, count=count(1500), target="≥ 25"),
        "slow": lambda s: figures.slow_model(
            s, datasets=64, count=count(3000), target="≥ 95 % of 160 (32 calls at once)"
        ),
        "search": lambda s: figures.searching(s, facts=count(100_000)),
    }


async def run(names: list[str], scale: float) -> list[Figure]:
    """One stack for all, so that later figures see a graph that has grown."""
    table = measures(scale)
    found: list[Figure] = []
    with native_stack() as stack:
        await asyncio.to_thread(stack.up)
        for name in names or list(table):
            print(f"measuring {name} …", flush=True)
            rows = await table[name](stack)
            for row in rows:
                print(f"  {row.name}: {row.measured}  (target {row.target})", flush=True)
            found += rows
    return found


def page(rows: list[Figure]) -> str:
    """The table as Markdown, with the machine and the day."""
    cores, gib = os.cpu_count(), psutil.virtual_memory().total / 2**30
    services = ", ".join(f"{service.title} {service.version}" for service in SERVICES.values())
    lines = [
        BEGIN,
        (
            f"Measured {datetime.now(UTC):%Y-%m-%d} by `make bench` on {cores} cores, {gib:.0f} GiB, "
            f"Python {platform.python_version()}; {services}, all on that machine with the load generator."
        ),
        "",
        "| figure | target | measured |",
        "|---|---|---|",
        *(f"| {row.name} | {row.target} | {row.measured} |" for row in rows),
        END,
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the length; printed only")
    parser.add_argument("--scale", type=float, default=1.0, help="length of the runs; printed only if not 1")
    parser.add_argument("--only", default="", help="comma-separated names")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    scale = 0.1 if options.quick else options.scale
    rows = asyncio.run(run(names, scale))
    table = page(rows)
    print(table)
    if scale == 1.0 and not names:
        text = PAGE.read_text()
        head, rest = text.split(BEGIN)
        PAGE.write_text(head + table + rest.split(END)[1])


if __name__ == "__main__":
    main()

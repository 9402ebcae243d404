"""`strandline serve`, `worker` and `up`: the processes."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from strandline.cli import output
from strandline.cli.options import settings

PROGRAM = "strandline"


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen; else STRANDLINE_API__HOST.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; else STRANDLINE_API__PORT.")] = None,
) -> None:
    """Run the HTTP server until it is told to stop (SIGTERM, Ctrl-C).

    It accepts while Kafka answers; searches need Neo4j and Weaviate. Without authentication it listens on this machine only.
    """
    from strandline import wiring
    from strandline.api.server import serve as serve_memory

    used = settings()

    async def run() -> None:
        async with wiring.open_memory(used) as memory:
            await serve_memory(
                memory,
                host=host or used.api.host,
                port=used.api.port if port is None else port,
                announce=lambda url: output.show(f"Strandline listens at {url}"),
            )

    output.run(run(), logs=used)


def worker() -> None:
    """Run a worker until it is told to stop (SIGTERM, Ctrl-C): it takes part in the work on all topics.

    Workers share the work by partitions, up to twelve of them. At its start a worker waits for services that are away.

    Exit codes: 0 told to stop, 1 not started, 3 crashed or stalled, 4 did not end in time.
    """
    from strandline.worker import work

    code = output.run(work(settings()), logs=settings())
    raise typer.Exit(code)


def up(
    workers: Annotated[int, typer.Option("--workers", "-w", min=1, max=12, help="How many workers.")] = 1,
    docker: Annotated[bool, typer.Option("--docker", help="Run the services by Docker.")] = False,
    native: Annotated[bool, typer.Option("--native", help="Run the services as plain processes.")] = False,
    stop_stack: Annotated[bool, typer.Option("--stop-stack", help="Stop the services too when it ends.")] = False,
) -> None:
    """Start services, topics, server and workers, and keep them running until Ctrl-C.

    The services stay up afterwards: `strandline stack down` stops them. Services whose addresses are set are used as they are.
    """
    if docker and native:
        raise typer.BadParameter("choose --docker or --native, not both")
    mode: Literal["auto", "native", "docker"] = "docker" if docker else "native" if native else "auto"
    try:
        started = _start_services(mode)
        _supervise(workers)
    except KeyboardInterrupt:  # before there is anything to end
        raise typer.Exit(130) from None
    finally:
        if stop_stack:
            _stop_services()
    if not stop_stack and started:
        output.tell("The services stay up: `strandline stack down` stops them.")


def _start_services(mode: Literal["auto", "native", "docker"]) -> bool:
    """Whether any service had to come from the own stack; those whose address is set are used as they are."""
    from strandline import stack
    from strandline.cli.stack import shown_progress
    from strandline.settings import load, unnamed_services

    wanted = unnamed_services()
    if wanted:
        with shown_progress() as shown:
            stack.up(settings().stack_folder, mode, wanted, shown)
        load.cache_clear()  # its addresses are settings now
    return bool(wanted)


def _stop_services() -> None:
    from strandline import stack
    from strandline.cli.stack import shown_progress
    from strandline.settings import unnamed_services

    if unnamed_services():
        with shown_progress() as shown:
            stack.down(settings().stack_folder, shown)


def _supervise(workers: int) -> None:
    from strandline.supervisor import Plan, System, supervise

    def say(name: str, line: str) -> None:
        output.tell(f"{name or PROGRAM:<10}| {output.printable(line)}")

    def started(system: System) -> None:
        used = settings()
        output.show(f"Strandline is up at {system.url}")
        output.show(
            f"  API {system.url}/docs   Kafka {used.kafka.bootstrap}   Neo4j {used.neo4j.uri}   Weaviate {used.weaviate.http_url}"
        )
        output.next_step(
            'strandline remember "Ada moved to Berlin on 1 March 2026." --wait complete',
            "in another terminal; Ctrl-C ends it here",
        )

    output.run(supervise(Plan(settings(), workers), say, started))


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Stay up afterwards, until Ctrl-C, and keep the data.")] = False,
) -> None:
    """Show it all: start services of its own, import a sample, ask three questions, stop and delete.

    It needs no key. The exit code is 1 if an answer is not what the sample says.
    """
    from strandline.demo import run

    raise typer.Exit(run(keep=keep))

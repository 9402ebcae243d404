"""A worker without the hop between extract and writer, to measure what the hop costs: `python -m tests.bench.fused_worker`.

Not a product: a model's answer that is not on the log is lost, and paid again, when the process ends before the write.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace

from agents.contract import Delivery, Done, Result, Turn
from agents.deps import Deps
from agents.pipeline import STAGES
from agents.stages import extract, writer
from strandline.settings import load
from strandline.telemetry import configure_logging
from strandline.worker import work
from topics.records import GraphWrite, RememberText


async def run(turn: Turn[RememberText], deps: Deps) -> Sequence[Result]:
    read = await extract.run(turn, deps)
    writes: list[Delivery[GraphWrite]] = []
    for delivery, result in zip(turn.deliveries, read, strict=True):
        (send,) = result.sends
        assert isinstance(send.record, GraphWrite)
        writes.append(Delivery(send.record, delivery.incoming))
    written = await writer.run(Turn(turn.key, turn.fence, tuple(writes)), deps)
    return [
        Done(after.sends, after.note) if isinstance(before, Done) else replace(before, sends=after.sends)
        for before, after in zip(read, written, strict=True)
    ]


def main() -> int:
    by_name = {stage.name: stage for stage in STAGES}
    fused = replace(by_name["writer"], reads="remember.texts", run=run, give_up=None)
    stages = tuple(fused if stage.name == "writer" else stage for stage in STAGES if stage.name != "extract")
    settings = load()
    configure_logging(settings.log_format, settings.log_level)
    return asyncio.run(work(settings, stages))


if __name__ == "__main__":
    sys.exit(main())

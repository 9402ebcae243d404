"""`strandline topics`: the topics of the table on the broker, and how far the workers are in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from strandline.cli import output
from strandline.cli.options import JsonOption, settings
from topics.errors import Refused, TopicDrift

if TYPE_CHECKING:
    from topics.kafka.groups import PartitionLag

app = typer.Typer(
    name="topics",
    help="Create the topics, compare them with the table, see what waits in them.",
    no_args_is_help=True,
    add_completion=False,
)


class _Place(NamedTuple):
    """What these commands need of the settings."""

    bootstrap: str
    prefix: str
    replication: int
    group: str


def _place() -> _Place:
    used = settings()
    kafka = used.kafka
    return _Place(kafka.bootstrap, kafka.prefix, kafka.replication, kafka.prefix + used.worker.group)


@app.command("list", epilog="\b\nExample: strandline topics list")
def list_topics(as_json: JsonOption = False) -> None:
    """Show the table of topics: what each carries, how long, who sends and reads it. Asks no broker."""
    from topics.registry import TOPICS

    if as_json:
        output.show_json(
            [
                {
                    "name": spec.name,
                    "record": spec.value.__name__,
                    "doc": spec.doc,
                    "partitions": spec.partitions,
                    "cleanup": spec.cleanup,
                    "retention_days": spec.retention / timedelta(days=1),
                    "max_bytes": spec.max_bytes,
                    "sent_by": spec.sent_by,
                    "read_by": spec.read_by,
                }
                for spec in TOPICS
            ]
        )
        return
    output.table(
        ("topic", "record", "partitions", "kept", "sent by", "read by"),
        [
            (
                spec.name,
                spec.value.__name__,
                str(spec.partitions),
                f"{spec.retention.days} days",
                ", ".join(spec.sent_by),
                ", ".join(spec.read_by),
            )
            for spec in TOPICS
        ],
    )


@app.command(epilog="\b\nExample: strandline topics create")
def create(as_json: JsonOption = False) -> None:
    """Create the topics that are missing; running it again changes nothing.

    Exit code 1 if one that exists is not as the table says: it is never changed, since your data lie in it.
    """
    from topics.kafka.admin import ensure_topics
    from topics.registry import TOPICS

    place = _place()
    try:
        made = output.run(ensure_topics(place.bootstrap, TOPICS, replication=place.replication, prefix=place.prefix))
    except TopicDrift as drift:
        _tell_differences(drift.differences, as_json)
        raise typer.Exit(1) from None
    if as_json:
        output.show_json({"created": made})
    elif made:
        output.show(f"Created {', '.join(made)}.")
        output.next_step("strandline worker", "works on what is sent to them")
    else:
        output.show("All topics were there, as the table says.")


@app.command(epilog="\b\nExample: strandline topics check --json")
def check(as_json: JsonOption = False) -> None:
    """Compare the topics with the table; changes nothing. Exit code 1 if they differ."""
    from topics.kafka.admin import check_topics
    from topics.registry import TOPICS

    place = _place()
    differences = output.run(check_topics(place.bootstrap, TOPICS, replication=place.replication, prefix=place.prefix))
    if as_json or differences:
        _tell_differences(differences, as_json)
    else:
        output.show("All topics are as the table says.")
    if differences:
        raise typer.Exit(1)


@app.command(epilog="\b\nExample: strandline topics lag")
def lag(
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Consumer group, prefix included; else that of the workers.")
    ] = None,
    partitions: Annotated[bool, typer.Option("--partitions", help="A row for each partition.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show how many records wait for a consumer group, by topic.

    `lost` are records that were deleted by their age before the group read them.
    """
    from topics.kafka.groups import group_lag

    place = _place()
    lags = output.run(group_lag(place.bootstrap, group or place.group, prefix=place.prefix))
    if as_json:
        output.show_json([asdict(one) | {"behind": one.behind, "lost": one.lost} for one in lags])
    elif not lags:
        output.show(f"Group {group or place.group} has not read anything yet.")
    else:
        _show_lags(lags, partitions)


@app.command(epilog="\b\nExample: strandline topics rewind source.events --yes")
def rewind(
    names: Annotated[
        list[str], typer.Argument(metavar="TOPIC...", help="Topics as `strandline topics list` names them.")
    ],
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Consumer group, prefix included; else that of the workers.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Set a consumer group back to the earliest kept record of topics, so that all is delivered again.

    Stop the group's workers first. What was done already is recognised and not done twice.
    """
    from topics.kafka.groups import rewind_group
    from topics.registry import TOPICS

    unknown = [name for name in names if name not in {spec.name for spec in TOPICS}]
    if unknown:
        raise Refused(f"no topic {unknown[0]!r}: `strandline topics list` shows them", field="TOPIC")
    place = _place()
    who = group or place.group
    if not yes:
        typer.confirm(f"Deliver all of {', '.join(names)} to group {who} again?", abort=True, err=True)
    output.run(rewind_group(place.bootstrap, who, topics=names, prefix=place.prefix))
    if as_json:
        output.show_json({"rewound": names, "group": who})
    else:
        output.show(f"Group {who} starts again with the earliest record of {', '.join(names)}.")


def _tell_differences(differences: Sequence[str], as_json: bool) -> None:
    if as_json:
        output.show_json({"differences": list(differences)})
    for difference in () if as_json else differences:
        output.show(output.one_line(difference))


def _show_lags(lags: Sequence[PartitionLag], by_partition: bool) -> None:
    if by_partition:
        rows = [
            (
                one.topic,
                str(one.partition),
                str(one.behind),
                "" if one.committed is None else str(one.committed),
                str(one.end),
            )
            for one in lags
        ]
        output.table(("topic", "partition", "waiting", "committed", "end"), rows)
        return
    names = list(dict.fromkeys(one.topic for one in lags))
    output.table(
        ("topic", "waiting", "lost"),
        [
            (
                name,
                str(sum(one.behind for one in lags if one.topic == name)),
                str(sum(one.lost for one in lags if one.topic == name)),
            )
            for name in names
        ],
    )

"""An independent reader: its own Cypher and its own Weaviate calls, none of the product's. It says what is wrong, in sentences."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import weaviate
from neo4j import AsyncDriver, AsyncGraphDatabase, NotificationMinimumSeverity
from neo4j.time import DateTime

from strandline.stack import Addresses
from tests.chaos.flow import Flow
from topics import ids
from topics.keys import DatasetKey
from topics.records import RememberRequest


def driver_of(addresses: Addresses) -> AsyncDriver:
    auth = ("neo4j", addresses.neo4j_password) if addresses.neo4j_password else None
    # A property that nobody has written yet is no news here.
    return AsyncGraphDatabase.driver(
        addresses.neo4j_uri, auth=auth, notifications_min_severity=NotificationMinimumSeverity.OFF
    )


async def _rows(driver: AsyncDriver, cypher: Any, **arguments: Any) -> list[dict[str, Any]]:
    records, _, _ = await driver.execute_query(cypher, arguments)
    return [record.data() for record in records]


async def applied(driver: AsyncDriver, flow: Flow) -> int:
    """How many numbers all datasets of the flow have written."""
    dataset_ids = [key.dataset_id for key in flow.accepted]
    rows = await _rows(
        driver,
        "MATCH (head:WriterHead) WHERE head.id IN $ids RETURN coalesce(sum(head.applied_seq), 0) AS applied",
        ids=dataset_ids,
    )
    return int(rows[0]["applied"])


async def violations(driver: AsyncDriver, index: weaviate.WeaviateAsyncClient, flow: Flow) -> list[str]:
    """Everything that is lost, doubled, disordered, or differs between graph and index."""
    found: list[str] = []
    for key, requests in sorted(flow.accepted.items()):
        found += await _graph_violations(driver, key, requests)
        found += await _index_violations(driver, index, key)
    return found


async def _graph_violations(driver: AsyncDriver, key: DatasetKey, requests: list[RememberRequest]) -> list[str]:
    found: list[str] = []
    rows = await _rows(
        driver,
        "MATCH (a:Artifact {dataset_id: $id}) RETURN a.run_id AS run, a.seq AS seq ORDER BY seq",
        id=key.dataset_id,
    )
    expected = [str(request.run_id) for request in requests]
    stored = [row["run"] for row in rows]
    for run, times in Counter(stored).items():
        if times > 1:
            found.append(f"{key.dataset}: run {run} stored {times} times")
    if missing := set(expected) - set(stored):
        found.append(f"{key.dataset}: {len(missing)} accepted texts are missing")
    if stored != expected and not missing:
        found.append(f"{key.dataset}: texts are not in the order they were accepted")
    if [row["seq"] for row in rows] != list(range(1, len(rows) + 1)):
        found.append(f"{key.dataset}: numbers have a hole or a double")
    found += await _chain_violations(driver, key, len(requests))
    runs = await _rows(
        driver, "MATCH (r:Run {dataset_id: $id}) RETURN r.state AS state, count(*) AS n", id=key.dataset_id
    )
    states = {row["state"]: row["n"] for row in runs}
    if states != {"complete": len(requests)}:
        found.append(f"{key.dataset}: runs are {states} instead of {len(requests)} complete")
    return found


async def _chain_violations(driver: AsyncDriver, key: DatasetKey, length: int) -> list[str]:
    """Each version's fact exactly once, ended exactly when the next one begins."""
    rows = await _rows(
        driver,
        "MATCH (f:Fact {dataset_id: $id, relation: 'has_status'})-[:OBJECT]->(o:Entity) "
        "OPTIONAL MATCH (a:Artifact)-[:STATES]->(f) "
        "RETURN o.name AS version, f.seq AS seq, f.valid_at AS since, f.invalid_at AS until, count(a) AS sources ORDER BY since",
        id=key.dataset_id,
    )
    versions = [str(row["version"]).casefold() for row in rows]
    if versions != [f"version {number}" for number in range(length)]:
        return [f"{key.dataset}: the chain has {len(rows)} links instead of {length}, or in another order"]
    found = []
    for older, newer in pairwise(rows):
        if _text(older["until"]) != _text(newer["since"]):
            found.append(f"{key.dataset}: {older['version']} ends {older['until']}, the next begins {newer['since']}")
        if older["seq"] >= newer["seq"]:
            found.append(f"{key.dataset}: {newer['version']} was written before {older['version']}")
    if rows and rows[-1]["until"] is not None:
        found.append(f"{key.dataset}: the last version is closed")
    if any(row["sources"] != 1 for row in rows):
        found.append(f"{key.dataset}: a version's fact does not have exactly one source")
    return found


def _text(value: object) -> str:
    return value.iso_format() if isinstance(value, DateTime) else str(value)


async def _index_violations(driver: AsyncDriver, index: weaviate.WeaviateAsyncClient, key: DatasetKey) -> list[str]:
    """The index holds exactly the graph's rows, each once."""
    expected = {
        "Fact": {
            row["id"]
            for row in await _rows(driver, "MATCH (f:Fact {dataset_id: $id}) RETURN f.id AS id", id=key.dataset_id)
        },
        "Entity": {
            row["id"]
            for row in await _rows(driver, "MATCH (e:Entity {dataset_id: $id}) RETURN e.id AS id", id=key.dataset_id)
        },
        "Chunk": {
            str(ids.chunk_id(row["id"], 0))
            for row in await _rows(driver, "MATCH (a:Artifact {dataset_id: $id}) RETURN a.id AS id", id=key.dataset_id)
        },
    }
    found = []
    for name, wanted in expected.items():
        tenant = index.collections.use(name).with_tenant(key.dataset_id)
        rows = Counter([str(row.uuid) async for row in tenant.iterator(return_properties=[])])
        if doubled := [row for row, times in rows.items() if times > 1]:
            found.append(f"{key.dataset}: {len(doubled)} rows of {name} are in the index twice")
        if set(rows) != wanted:
            found.append(
                f"{key.dataset}: index {name} lacks {len(wanted - set(rows))} and has {len(set(rows) - wanted)} that the graph has not"
            )
    return found

"""The keyword canary: does this Weaviate find all it was given by words?

Releases before 1.37.10 silently miss matches of a query of several words among documents that are not flushed to disk yet (upstream pull request
11780). Nothing fails and no log line tells: search just gets worse. So every start asks once, on a collection of its own, a question whose only
right answer is known.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from weaviate import WeaviateAsyncClient
from weaviate.classes.config import Configure, DataType, Property, Tokenization
from weaviate.exceptions import WeaviateBaseError

from topics.errors import Outage, StrandlineError

FIRST_GOOD_VERSION = "1.37.10"

_DOCUMENTS = 150
"""1.35.2 fails with 50 already, with 3,000 still."""


class KeywordSearchBroken(StrandlineError):
    """Weaviate answers, but its keyword search misses matches; the message says which release mends it."""

    code: ClassVar[str] = "keyword_search_broken"


async def check_keyword_search(client: WeaviateAsyncClient) -> None:
    """Raise KeywordSearchBroken unless the only document with a rare word is first for "common rare".

    Takes a connected client; makes a throw-away collection and deletes it. Raises Outage if Weaviate cannot be asked. Costs well under a second.
    """
    name = f"Canary{uuid4().hex}"
    try:
        try:
            found, version = await _ask(client, name)
        finally:
            await client.collections.delete(name)
    except WeaviateBaseError as error:
        raise Outage("weaviate", f"Weaviate could not be asked whether its keyword search works: {error}") from error
    if found != "common rare":
        raise KeywordSearchBroken(
            f"Weaviate {version} misses keyword matches among fresh documents: for 'common rare' it put {found!r} first. "
            f"Use {FIRST_GOOD_VERSION} or later, or search will leave out what it has."
        )


async def _ask(client: WeaviateAsyncClient, name: str) -> tuple[str, str]:
    """The text that comes first ("" for none), and the server's version."""
    collection = await client.collections.create(
        name,
        properties=[Property(name="text", data_type=DataType.TEXT, tokenization=Tokenization.WORD)],
        vector_config=Configure.Vectors.self_provided(),
    )
    texts = [f"common filler{number % 7}" for number in range(_DOCUMENTS)]
    # In the middle: 1.35.2 does find it where it is the first document.
    texts[_DOCUMENTS // 2] = "common rare"
    written = await collection.data.insert_many([{"text": text} for text in texts])
    if written.has_errors:
        reasons = {error.message for error in written.errors.values()}
        raise Outage("weaviate", f"Weaviate took only some of the canary's documents: {'; '.join(sorted(reasons))}")
    answer = await collection.query.bm25("common rare", query_properties=["text"], limit=1)
    first = str(answer.objects[0].properties["text"]) if answer.objects else ""
    return first, str((await client.get_meta())["version"])

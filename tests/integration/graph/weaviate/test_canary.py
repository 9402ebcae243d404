"""The keyword canary, against the real server."""

import pytest

from graph.weaviate.canary import check_keyword_search
from strandline.stack import Addresses
from tests.services import weaviate_client

pytestmark = pytest.mark.connected


async def test_the_pinned_weaviate_finds_the_rare_word_and_the_canary_leaves_nothing_behind(
    services: Addresses,
) -> None:
    async with weaviate_client(services) as client:
        await check_keyword_search(client)

        left = [name for name in await client.collections.list_all() if name.startswith("Canary")]
        assert left == []

"""The keyword canary, against the real server."""

import pytest

from graph.weaviate.canary import check_keyword_search
from strandline.stack import Addresses, NativeStack
from tests.services import weaviate_client
from topics.errors import Outage

pytestmark = pytest.mark.connected


async def test_the_pinned_weaviate_finds_the_rare_word_and_the_canary_leaves_nothing_behind(
    services: Addresses,
) -> None:
    async with weaviate_client(services) as client:
        await check_keyword_search(client)

        left = [name for name in await client.collections.list_all() if name.startswith("Canary")]
        assert left == []


async def test_a_weaviate_that_went_away_is_an_outage(own_stack: NativeStack) -> None:
    own_stack.start("weaviate")
    async with weaviate_client(own_stack.addresses) as client:
        own_stack.kill("weaviate")
        with pytest.raises(Outage, match="could not be asked whether its keyword search works"):
            await check_keyword_search(client)

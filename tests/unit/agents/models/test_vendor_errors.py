"""What a vendor's failure becomes, with the real SDKs against a stand-in that fails on demand."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from agents.models.anthropic_model import AnthropicModel
from agents.models.base import LanguageModel, Passage
from agents.models.openai_embedder import BATCH_CHARS, BATCH_TEXTS, OpenAIEmbedder, batches
from agents.models.openai_model import OpenAIModel
from agents.models.vendor_calls import BILLING_RETRY, RETRY_AFTER_CAP, retry_after_of
from tests.simulators import model_vendors as vendor
from tests.simulators.model_vendors import KEY, Fault, ModelVendors
from topics.errors import NeedsReauth, Outage, Permanent, Retryable, StrandlineError

SECRET_TEXT = "The merger with Globex is a secret"
PASSAGE = Passage(SECRET_TEXT, datetime(2025, 3, 12, tzinfo=UTC))


@pytest.fixture
async def vendors() -> AsyncIterator[ModelVendors]:
    async with ModelVendors() as running:
        yield running


def open_model(
    name: str, vendors: ModelVendors, *, key: str = KEY, timeout: timedelta = timedelta(seconds=30)
) -> LanguageModel:
    if name == "anthropic":
        return AnthropicModel(SecretStr(key), base_url=vendors.anthropic_url, timeout=timeout)
    return OpenAIModel(SecretStr(key), base_url=vendors.openai_url, timeout=timeout)


@pytest.fixture(params=["anthropic", "openai"])
async def model(request: pytest.FixtureRequest, vendors: ModelVendors) -> AsyncIterator[LanguageModel]:
    opened = open_model(request.param, vendors)
    yield opened
    await opened.close()


async def failure_of(model: LanguageModel) -> StrandlineError:
    with pytest.raises(StrandlineError) as caught:
        await model.extract(PASSAGE)
    return caught.value


FAULTS: list[tuple[str, Fault, type[StrandlineError]]] = [
    ("rate limited", vendor.rate_limited("7"), Retryable),
    ("overloaded", vendor.overloaded(), Outage),
    ("server error", vendor.server_error(), Outage),
    ("unavailable", vendor.server_error(503), Outage),
    ("dropped", vendor.drop, Outage),
    ("cut", vendor.cut, Outage),
    ("page instead of an answer", vendor.html_page(), Retryable),
    ("page of a gateway", vendor.html_page(502), Outage),
    ("page of a proxy", vendor.html_page(403), Outage),
    ("broken JSON", vendor.broken_json, Retryable),
    ("empty object", vendor.empty_object, Retryable),
    ("answer is prose", vendor.invalid_json, Retryable),
    ("answer is a list", vendor.answers("[1, 2]"), Retryable),
    ("answer is deep", vendor.answers("{" + '"a":[' * 20_000), Retryable),
    ("answer has other fields", vendor.answers('{"entities": "Ada"}'), Retryable),
    ("truncated", vendor.truncation, Permanent),
    ("refused", vendor.refusal, Permanent),
    ("filtered", vendor.content_filter, Permanent),
    ("bad request", vendor.bad_request(), Permanent),
    ("unknown model", vendor.not_found(), Permanent),
    ("no such key", vendor.unauthorized(), NeedsReauth),
    ("forbidden", vendor.unauthorized(403), NeedsReauth),
    ("no quota", vendor.insufficient_quota(), Outage),
    ("no credit", vendor.low_credit(), Outage),
]


@pytest.mark.parametrize(("fault", "expected"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
async def test_each_fault_has_its_place_in_the_error_tree(
    vendors: ModelVendors, model: LanguageModel, fault: Fault, expected: type[StrandlineError]
) -> None:
    vendors.faults.append(fault)
    error = await failure_of(model)
    assert type(error) is expected, error
    assert len(vendors.requests) == 1, "the SDK retried by itself"


@pytest.mark.parametrize("fault", [fault[1] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
async def test_no_error_repeats_the_key_or_the_text(vendors: ModelVendors, model: LanguageModel, fault: Fault) -> None:
    vendors.faults.append(fault)
    error = await failure_of(model)
    printed = "".join(traceback.format_exception(error))
    assert SECRET_TEXT not in printed
    assert KEY not in printed
    cause: BaseException | None = error
    while cause is not None:
        request = getattr(cause, "request", None)
        assert KEY not in str(getattr(request, "headers", {}).items() if request is not None else "")
        cause = cause.__cause__


async def test_a_vendor_that_echoes_the_text_is_not_quoted(vendors: ModelVendors, model: LanguageModel) -> None:
    vendors.faults.append(vendor.bad_request(f"cannot process: {SECRET_TEXT}"))
    assert SECRET_TEXT not in "".join(traceback.format_exception(await failure_of(model)))


async def test_a_debug_log_shows_neither_text_nor_key(
    vendors: ModelVendors, model: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await model.extract(PASSAGE)
    vendors.faults.append(vendor.unauthorized())
    await failure_of(model)
    assert SECRET_TEXT not in caplog.text
    assert KEY not in caplog.text


async def test_a_service_is_back_after_its_faults_without_a_new_client(
    vendors: ModelVendors, model: LanguageModel
) -> None:
    vendors.faults.extend([vendor.drop, vendor.overloaded()])
    for _ in range(2):
        await failure_of(model)
    assert (await model.extract(Passage("Ada | works_at | Acme", PASSAGE.reference_time))).statements


async def test_an_outage_names_the_service(vendors: ModelVendors, model: LanguageModel) -> None:
    vendors.faults.append(vendor.overloaded())
    error = await failure_of(model)
    assert isinstance(error, Outage)
    assert error.service == "model"


async def test_an_empty_account_is_asked_rarely(vendors: ModelVendors, model: LanguageModel) -> None:
    vendors.faults.append(vendor.insufficient_quota())
    error = await failure_of(model)
    assert isinstance(error, Outage)
    assert error.retry_after == BILLING_RETRY
    assert "credit" in str(error)


@pytest.mark.parametrize("fault", [vendor.stall, vendor.drip], ids=["silent", "dripping"])
@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_a_call_past_its_deadline_is_an_outage(vendors: ModelVendors, name: str, fault: Fault) -> None:
    model = open_model(name, vendors, timeout=timedelta(milliseconds=300))
    vendors.faults.append(fault)
    error = await failure_of(model)
    assert type(error) is Outage
    assert "in time" in str(error)
    await model.close()


@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_a_cancelled_call_stays_cancelled_and_frees_its_place(vendors: ModelVendors, name: str) -> None:
    model = open_model(name, vendors)
    vendors.faults.append(vendor.stall)
    call = asyncio.create_task(model.extract(PASSAGE))
    await vendors.stalled.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await model.extract(PASSAGE)).model_id == model.model_id
    await model.close()


@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_nobody_listening_is_an_outage(vendors: ModelVendors, name: str) -> None:
    model = open_model(name, vendors)
    await vendors.__aexit__()
    error = await failure_of(model)
    assert type(error) is Outage
    assert "base_url" in str(error)
    await model.close()


@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_a_wrong_key_needs_a_person(vendors: ModelVendors, name: str) -> None:
    model = open_model(name, vendors, key="sk-wrong-one-of-mine")
    error = await failure_of(model)
    assert type(error) is NeedsReauth
    assert "sk-wrong" not in "".join(traceback.format_exception(error))
    await model.close()


async def test_usage_is_recorded(vendors: ModelVendors, model: LanguageModel) -> None:
    usage = (await model.extract(Passage("Ada | works_at | Acme", PASSAGE.reference_time))).usage
    assert (usage.input_tokens, usage.output_tokens, usage.calls) == (420, 30, 1)


async def test_a_sentence_costs_one_request_below_four_thousand_characters(
    vendors: ModelVendors, model: LanguageModel
) -> None:
    await model.extract(
        Passage(
            "Ada Lovelace has worked at Acme Corp in Berlin since March 2021.", PASSAGE.reference_time, "A note", "Nora"
        )
    )
    assert [request.prompt_chars < 4_000 for request in vendors.requests] == [True]


# Retry-After

DATE = "Wed, 12 Mar 2025 10:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, timedelta(seconds=7)),
        ({"retry-after": "0.5"}, timedelta(seconds=0.5)),
        ({"retry-after": "0"}, timedelta(0)),
        ({"retry-after": "86400"}, RETRY_AFTER_CAP),
        ({"retry-after": "9" * 400}, RETRY_AFTER_CAP),
        ({"retry-after-ms": "250", "retry-after": "9"}, timedelta(milliseconds=250)),
        ({"retry-after": "Wed, 12 Mar 2025 10:00:30 GMT", "date": DATE}, timedelta(seconds=30)),
        ({"retry-after": "Wed, 12 Mar 2025 09:00:00 GMT", "date": DATE}, timedelta(0)),
        ({"retry-after": "Fri, 12 Mar 2100 10:00:00 GMT"}, RETRY_AFTER_CAP),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": ""}, None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], expected: timedelta | None) -> None:
    assert retry_after_of(headers) == expected


async def test_the_wait_a_vendor_asks_for_reaches_the_caller(vendors: ModelVendors, model: LanguageModel) -> None:
    vendors.faults.append(vendor.rate_limited("7"))
    error = await failure_of(model)
    assert isinstance(error, Retryable)
    assert error.retry_after == timedelta(seconds=7)


# Embeddings


async def test_a_wrong_dimension_is_told(vendors: ModelVendors) -> None:
    embedder = OpenAIEmbedder(SecretStr(KEY), base_url=vendors.openai_url)
    vendors.faults.append(vendor.short_vectors)
    with pytest.raises(Permanent, match="set the dimension"):
        await embedder.embed(["a"])
    await embedder.close()


async def test_a_missing_vector_is_a_broken_answer(vendors: ModelVendors) -> None:
    embedder = OpenAIEmbedder(SecretStr(KEY), base_url=vendors.openai_url)
    vendors.faults.append(vendor.missing_vector)
    with pytest.raises(Retryable):
        await embedder.embed(["a", "b"])
    await embedder.close()


async def test_an_embedder_away_is_an_outage_of_the_embedder(vendors: ModelVendors) -> None:
    embedder = OpenAIEmbedder(SecretStr(KEY), base_url=vendors.openai_url)
    vendors.faults.append(vendor.overloaded())
    with pytest.raises(Outage) as caught:
        await embedder.embed(["a"])
    assert caught.value.service == "embedder"
    await embedder.close()


async def test_forty_texts_are_one_request(vendors: ModelVendors) -> None:
    embedder = OpenAIEmbedder(SecretStr(KEY), base_url=vendors.openai_url)
    await embedder.embed([f"text {number}" for number in range(40)])
    assert len(vendors.requests) == 1
    await embedder.close()


def test_batches_stay_below_the_limits_of_one_request() -> None:
    many = list(batches(["x"] * (BATCH_TEXTS + 1)))
    assert [len(batch) for batch in many] == [BATCH_TEXTS, 1]
    long = list(batches(["x" * 8_000] * 40))
    assert all(sum(map(len, batch)) <= BATCH_CHARS for batch in long)
    assert sum(map(len, long)) == 40


def test_a_model_of_unknown_dimension_must_be_told() -> None:
    with pytest.raises(Permanent, match="dimension"):
        OpenAIEmbedder(None, model="bge-small", base_url="http://127.0.0.1:1/v1")

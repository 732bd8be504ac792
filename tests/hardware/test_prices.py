"""What a GPU-hour costs where nobody says."""

from datetime import date

import pytest

from advisor.hardware import find_gpu, prices
from advisor.hardware.prices import Price, Prices, dates_of, shipped_prices
from tests.tables.prices import cards_of, table

OFFER = {"kind": "on-demand", "usd_per_gpu_hour": "2.0", "date": "2026-05-24", "why_not_counted": ""}


def offers(*changes: dict[str, str]) -> dict[str, Price]:
    return table(OFFER | change for change in changes)


def test_every_price_is_that_of_a_card_that_two_clouds_sell():
    found = shipped_prices()
    assert len(found) > 30
    for gpu, price in found.items():
        assert find_gpu(gpu) is not None and price.clouds >= 2 and price.is_weak == (price.clouds == 2)
        assert 0.05 < price.amount < 50 and date.fromisoformat(price.oldest) <= date.fromisoformat(price.newest)


def test_a_larger_card_of_a_line_costs_more():
    found = {gpu: price.amount for gpu, price in shipped_prices().items()}
    assert found["l4"] < found["l40s"] < found["h100-80gb-sxm"] < found["h200"] < found["b200"] < found["b300"]


def test_the_median_of_clouds_the_newest_of_each():
    found = offers(
        {"key": "h200", "cloud": "a", "usd_per_gpu_hour": "9.0", "date": "2026-01-01"},
        {"key": "h200", "cloud": "a"},
        {"key": "h200", "cloud": "b", "usd_per_gpu_hour": "3.0", "date": "2026-08-22"},
        {"key": "h200", "cloud": "c", "usd_per_gpu_hour": "0.1", "kind": "spot"},
        {"key": "h200", "cloud": "d", "usd_per_gpu_hour": "0.1", "why_not_counted": "the machine is left out"},
    )
    assert found == {"h200": Price(2.5, 2, "2026-05-24", "2026-08-22")}


def test_one_cloud_is_no_price():
    assert offers({"key": "h200", "cloud": "a"}) == {}


@pytest.mark.parametrize(
    ("key", "cards"),
    [
        ("a100-80gb", ("a100-80gb-sxm", "a100-80gb-pcie")),
        ("v100-16gb", ("v100-16gb-sxm2", "v100-16gb-pcie")),
        ("h100-80gb-pcie", ("h100-80gb-pcie",)),
        ("rtx-4090", ("rtx-4090",)),
        ("abacus", ()),
    ],
)
def test_a_key_that_leaves_the_form_open_is_that_of_all_forms(key: str, cards: tuple[str, ...]):
    assert cards_of(key) == cards


def test_what_is_stated_goes_before_the_table():
    assert Prices().of("h200") == shipped_prices()["h200"] and Prices().of("gb10") is None
    assert Prices(2.0).of("gb10") == Price(2.0)
    assert Prices(by_card={"l4": 1.0}).of("h200") is None
    assert Prices(3.0, {"l4": 1.0}).of("l4") == Price(1.0) and Prices(3.0, {"l4": 1.0}).of("h200") == Price(3.0)


@pytest.mark.parametrize(("today", "age"), [("2026-11-25", ""), ("2027-02-18", ", 180 days old")])
def test_the_age_is_said_from_180_days_on(today: str, age: str, monkeypatch: pytest.MonkeyPatch):
    class Calendar(date):
        @classmethod
        def today(cls) -> date:
            return date.fromisoformat(today)

    monkeypatch.setattr(prices, "date", Calendar)
    two = [Price(1.0, 4, "2026-05-24", "2026-07-20"), Price(1.0, 4, "2026-06-01", "2026-08-22"), Price(1.0)]
    assert dates_of(two) == f"2026-05-24 to 2026-08-22{age}"
    assert dates_of([Price(1.0)]) == ""

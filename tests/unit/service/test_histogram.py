"""The samples of a histogram: as Prometheus reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.service.delays import Histogram

SECONDS = st.lists(st.floats(0, 200_000) | st.sampled_from((0.001, 0.05, 1.0, 86_400.0)), max_size=50)


@given(SECONDS)
def test_each_bucket_counts_all_that_took_no_longer_than_its_bound(durations: list[float]) -> None:
    histogram = Histogram()
    for each in durations:
        histogram.observe(each)
    samples = histogram.metric("cdc_x_seconds", "x").samples
    buckets = {float(sample.labels["le"]): sample.value for sample in samples if sample.name == "cdc_x_seconds_bucket"}
    assert buckets == {bound: sum(each <= bound for each in durations) for bound in buckets}
    assert max(buckets) == float("inf")
    others = {sample.name: sample.value for sample in samples if "le" not in sample.labels}
    assert others == {"cdc_x_seconds_count": len(durations), "cdc_x_seconds_sum": pytest.approx(sum(durations))}
    assert histogram.count == len(durations)

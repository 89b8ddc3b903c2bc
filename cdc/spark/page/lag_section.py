"""Renders how long transactions took, stage by stage, as tables and plots."""

from cdc.spark.lag.summary import STAGES, WHOLE, Lag, Quantiles
from cdc.spark.page.markup import Figure, Html, element, fragment, table
from cdc.spark.page.plots import QUANTILES, histogram, over_time
from cdc.spark.page.sections import code, with_rest_hidden
from cdc.spark.report.phrases import counted
from cdc.spark.report.units import duration, moment

__all__ = ["EXPLAINED", "lag_section"]

EXPLAINED = {
    "leader to Kafka": "from the leader's commit to its record in Kafka",
    "Kafka to follower": "from the record in Kafka to the follower's commit",
    "follower to Kafka": "from the follower's commit to the follower's own record in Kafka",
    WHOLE: "from the leader's commit to the follower's commit",
}
_TABLES_OPEN, _TABLES_SHOWN = 10, 200


def lag_section(lag: Lag) -> Html:
    """The quantiles of each stage, its plots, and the slowest tables."""
    head = ("stage", "", "transactions", *QUANTILES)
    lines = [(name, EXPLAINED[name], *_figures(stage.total)) for name, stage in lag.stages.items()]
    period = (
        f"{counted(lag.transactions, 'leader transaction')}, committed {moment(lag.first_us)} to {moment(lag.last_us)}."
    )
    return fragment(
        element("p", period),
        table(head, lines),
        element("p", _caveats(lag), class_="dim"),
        *(_plots(lag, name) for name in lag.stages),
        _tables(lag),
    )


def _figures(quantiles: Quantiles) -> tuple[int | Figure, ...]:
    times = (duration(getattr(quantiles, f"{name}_us")) for name in QUANTILES)
    return quantiles.transactions, *map(Figure, times)


def _caveats(lag: Lag) -> str:
    """What a reader must know about the figures: clocks that differ, and times that are unknown."""
    clocks = (
        "Each stage is measured with the clocks of two machines: if they differ, it is longer or shorter by the "
        "difference, and may be negative."
    )
    counts = [lag.stages[name].total.transactions if name in lag.stages else 0 for name in STAGES]
    if min(counts) == lag.transactions:
        return clocks
    return (
        f"{clocks} When a record was committed in Kafka is known only while the compacted commit log keeps the entry "
        "that was committed with it: a stage counts the transactions of which both times are known."
    )


def _plots(lag: Lag, name: str) -> Html:
    """The histogram of a stage, and its quantiles over time."""
    stage = lag.stages[name]
    drawn = (
        histogram(stage, name),
        over_time(stage, name, first_us=lag.first_us, last_us=lag.last_us, stretch_us=lag.stretch_us),
    )
    return element(
        "figure", element("figcaption", f"{name}, {EXPLAINED[name]}"), element("div", *drawn, class_="plots")
    )


def _tables(lag: Lag) -> Html:
    """The quantiles by table, the slowest first."""
    others = [name for name in STAGES if name != WHOLE]
    head = ("table", "transactions", *QUANTILES, *(f"p95 {name}" for name in others))
    lines = []
    for each in lag.tables[:_TABLES_SHOWN]:
        known = (each.stages.get(name) for name in others)
        p95 = (Figure(duration(stage.p95_us) if stage else "") for stage in known)
        lines.append((code(each.table), *_figures(each.stages[WHOLE]), *p95))
    title = element("h3", f"By table, {WHOLE}: the slowest of {lag.tables_seen:,} first")
    return fragment(title, with_rest_hidden(head, lines, _TABLES_OPEN))

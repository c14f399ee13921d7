"""The features of an intraday bar: name, formula, unit. Nothing heavy is imported, so that a list is instant.

Every one is known at the bar's close. Signs: a distance is the close minus the level, so it is positive above
the level. `A` is the session's average true range: the mean true range of the 14 sessions before, never
below a tick. `so far` means from the session's first bar to this one. Logarithms are natural.
"""

from __future__ import annotations

from dataclasses import dataclass

RANGES = "session ranges (A)"
SIDE = "-1 below, 0 inside, 1 above"


@dataclass(frozen=True, kw_only=True)
class FeatureDescription:
    """One feature as a person reads it; `needs_vix`: it is left out where the data has no VIX column."""

    name: str
    formula: str
    unit: str
    group: str
    needs_vix: bool = False


def _group(group: str, *rows: tuple[str, str, str], needs_vix: bool = False) -> tuple[FeatureDescription, ...]:
    return tuple(FeatureDescription(name=n, formula=f, unit=u, group=group, needs_vix=needs_vix) for n, f, u in rows)


CATALOG = (
    *_group(
        "session profile",
        ("dpoc_dist", "(close - POC of the session's profile so far) / A", RANGES),
        ("dvah_dist", "(close - value area high of the profile so far) / A", RANGES),
        ("dval_dist", "(close - value area low of the profile so far) / A", RANGES),
        ("dva_width", "(value area high - value area low of the profile so far) / A", RANGES),
        ("in_value", "place of the close against the value area so far", SIDE),
        ("dpoc_drift_30", "(POC so far - POC 30 bars earlier, at most at the session's first bar) / A", RANGES),
    ),
    *_group(
        "prior session",
        ("ppoc_dist", "(close - POC of the session before) / A", RANGES),
        ("pvah_dist", "(close - value area high of the session before) / A", RANGES),
        ("pval_dist", "(close - value area low of the session before) / A", RANGES),
        ("pva_width", "(value area high - value area low of the session before) / A", RANGES),
        ("open_vs_pva", "place of the session's open against the value area of the session before", SIDE),
        ("p_close_dist", "(close - last close of the session before) / A", RANGES),
    ),
    *_group(
        "several sessions",
        ("poc5_dist", "(close - POC of the summed profiles of the 5 sessions before) / A", RANGES),
        ("poc20_dist", "(close - POC of the summed profiles of the 20 sessions before) / A", RANGES),
        (
            "naked_poc_above_dist",
            "(nearest POC above the close, of the 20 sessions before, in no bar's range since - close) / A; "
            "5 where there is none within 5",
            RANGES,
        ),
        (
            "naked_poc_below_dist",
            "(close - nearest such POC at or below the close) / A; 5 where there is none within 5",
            RANGES,
        ),
    ),
    *_group(
        "shape",
        ("profile_skew", "third standardised moment of price under the profile so far; 0 in one row", "none"),
        ("profile_kurtosis", "fourth standardised moment - 3; 0 in one row", "none"),
        ("poc_volume_share", "volume of the POC's row / volume of the profile so far; 0 without volume", "share"),
        (
            "hvn_count",
            "high volume nodes of the profile so far, in bins of A / 24: bins above their left and not below "
            "their right neighbour, with at least the mean volume of the bins in range",
            "nodes",
        ),
    ),
    *_group(
        "nodes",
        ("nearest_hvn_dist", "(close - centre of the nearest high volume node) / A; the upper of two", RANGES),
        (
            "nearest_lvn_dist",
            "(close - centre of the nearest low volume node) / A: a bin below its left and not above its right "
            "neighbour, with at most the mean volume; the empty bins next to the range are nodes, too",
            RANGES,
        ),
        ("lvn_above_dist", "(centre of the next low volume node above the close's bin - close) / A", RANGES),
        ("lvn_below_dist", "(close - centre of the next low volume node below the close's bin) / A", RANGES),
    ),
    *_group(
        "balance",
        ("ib_high_dist", "(close - highest price so far within the first 60 minutes) / A", RANGES),
        ("ib_low_dist", "(close - lowest price so far within the first 60 minutes) / A", RANGES),
        ("ib_range_ratio", "range so far within the first 60 minutes / A", RANGES),
    ),
    *_group(
        "vwap",
        ("vwap_dist", "(close - volume-weighted mean of (high + low + close) / 3 so far) / A", RANGES),
        ("vwap_band_z", "(close - that mean) / volume-weighted standard deviation so far", "deviations"),
        ("vwap_slope_30", "(that mean - the one 30 bars earlier, at most at the session's first bar) / A", RANGES),
    ),
    *_group(
        "returns",
        *((f"ret_{n}", f"ln(close[t] / close[t-{n}]), over session bounds", "log return") for n in (1, 5, 15, 30, 60)),
        ("gap_open", "ln(the session's first open / last close of the session before)", "log return"),
    ),
    *_group(
        "volatility",
        ("atr_14", "mean over 14 bars of max(high, close before) - min(low, close before)", "ticks"),
        ("realized_vol_30", "sqrt(mean over 30 bars of ret_1^2)", "log return per bar"),
        ("realized_vol_120", "sqrt(mean over 120 bars of ret_1^2)", "log return per bar"),
        ("parkinson_30", "sqrt(mean over 30 bars of ln(high / low)^2 / (4 ln 2))", "log return per bar"),
        ("range_pct_session", "100 * (highest - lowest price so far) / the session's first open", "per cent"),
    ),
    *_group(
        "volume",
        ("vol_z_20", "(volume - mean of 20 bars) / standard deviation of 20 bars; 0 where equal", "deviations"),
        (
            "vol_tod_ratio",
            "volume / mean volume of the bars at this time of day in the 20 sessions before; 1 where none was",
            "ratio",
        ),
        (
            "cum_vol_ratio",
            "volume so far / mean volume up to this time of day in the 20 sessions before; 1 where none was",
            "ratio",
        ),
        ("up_down_vol_30", "sum over 30 bars of sign(ret_1) * volume / sum of volume; 0 without volume", "-1 to 1"),
        (
            "bar_delta_proxy",
            "((close - low) - (high - close)) / (high - low) * volume / mean volume of 20 bars",
            "ratio",
        ),
    ),
    *_group(
        "VIX",
        (
            "vix_level_z_20d",
            "(VIX - mean) / standard deviation of the last VIX of each of the 20 sessions before",
            "deviations",
        ),
        ("vix_ret_5", "ln(VIX[t] / VIX[t-5])", "log ratio"),
        ("vix_ret_30", "ln(VIX[t] / VIX[t-30])", "log ratio"),
        ("vix_intraday_range", "(highest - lowest VIX so far) / the session's first VIX", "ratio"),
        ("es_vix_corr_60", "correlation over 60 bars of ret_1 with the VIX's own; 0 where one stands still", "-1 to 1"),
        needs_vix=True,
    ),
    *_group(
        "clock",
        ("tod_sin", "sin(2 pi * time from the session's begin to the bar's close / full session)", "none"),
        ("tod_cos", "cos of the same", "none"),
        ("minutes_to_close", "minutes from the bar's close to the session's scheduled end, not below 0", "minutes"),
    ),
)

NAMES = tuple(feature.name for feature in CATALOG)

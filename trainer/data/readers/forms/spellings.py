"""What columns are called: the usual spellings of OHLCV headers, as programs, exchanges and sites write them.

Headers are facts, and are compared as such; those of other languages are of investing.com's and exchanges' own pages.
"""

from __future__ import annotations

SPELLINGS = {
    "date": (
        "date", "datetime", "date_time", "candle_date_time_utc", "time_period_start", "time_open", "open_time",
        "timestamp", "time_stamp", "ts", "ts_event", "gmt_time", "utc_time", "utc", "local_time", "time_utc",
        "bar_time", "dtyyyymmdd", "day", "trade_date", "trading_day", "index", "unnamed_0", "unix", "unix_time",
        "unix_timestamp", "epoch", "time", "window_start", "start_time", "begin", "starttime", "index_level_0",
        "quote_date", "datum", "fecha", "data", "tarih", "дата", "日期", "日付", "日付け", "날짜",
        "dates", "mts", "begins_at", "start", "dato", "päivämäärä", "tanggal", "ngày", "ημερομηνία", "วันเดือนปี", "תאריך",
        "التاريخ", "交易日期", "日_期", "时间", "時間", "日時", "일자", "일시", "t", "",
    ),
    # the last words of each are those of other languages, as investing.com, ariva.de, Stooq and others write them
    "open": (
        "open", "o", "open_price", "px_open", "first", "opening_price", "bid_open", "open_bid", "openbid",
        "start_price", "eröffnung", "eröffn", "eroeffnung", "erster", "ouverture", "ouv", "apertura", "abertura",
        "otwarcie", "açılış", "откр", "开盘", "开盘价", "開盤價", "始値", "시가",  # noqa: RUF001
        "öppen", "öppningskurs", "åpning", "åben", "avaus", "kurs_otwarcia", "pembukaan", "mở", "άνοιγμα", "เปิด",
        "ราคาเปิด",
        "פתיחה", "الافتتاح", "відкриття", "開盤", "openprc", "prcod",
    ),
    "high": (
        "high", "h", "high_price", "px_high", "max", "highest", "bid_high", "high_bid", "highbid", "max_price",
        "hoch", "tageshoch", "plus_haut", "haut", "máximo", "maximo", "massimo", "máxima", "maxima",
        "hoog", "najwyzszy",
        "yüksek", "макс", "高", "最高", "最高价", "最高價", "高値", "고가",
        "máx", "högst", "høy", "høj", "ylin", "kurs_max", "kurs_maksymalny", "tertinggi", "cao", "υψηλό", "สูงสุด",
        "גבוה", "الأعلى", "найвища", "askhi", "prchd",
    ),
    "low": (
        "low", "l", "low_price", "px_low", "min", "lowest", "bid_low", "low_bid", "lowbid", "min_price", "tief",
        "tagestief", "plus_bas", "bas", "mínimo", "minimo", "mínima", "minima",
        "laag", "najnizszy", "düşük", "мин", "低", "最低",
        "最低价", "最低價", "安値", "저가",
        "mín", "lägst", "lav", "alin", "kurs_min", "kurs_minimalny", "terendah", "thấp", "χαμηλό", "ต่ำสุด", "נמוך",
        "الأدنى", "найнижча", "bidlo", "prcld",
    ),
    "close": (
        "close", "c", "close_price", "px_last", "last_price", "px_close", "last", "close_last", "settle", "bid_close",
        "close_bid", "closebid", "closing_price", "end_price", "trade_price", "price", "latest", "schluss",
        "schlusskurs",
        "zuletzt", "clôture", "cloture", "dernier", "cierre", "último", "ultimo", "chiusura", "laatste", "zamkniecie",
        "ostatnio", "şimdi", "цена", "收盘", "收盘价", "收盤價", "終値", "종가",
        "clot", "fermeture", "fechamento", "senaste", "slutkurs", "seneste", "siste", "viimeisin", "kurs_zamknięcia",
        "kurs_zamkniecia", "terakhir", "lần_cuối", "τελευταία", "ล่าสุด", "מחיר", "الأخير", "остання", "收盤", "prc",
        "prccd",
        "close_close_price_adjusted_for_splits",  # a page of Yahoo, copied with the notes on its headers
    ),
    "volume": (
        "quantidade",  # Nelogica's Profit calls the traded money Volume, and writes contracts next to it
        "stücke", "stuecke",  # and ARIVA calls it Volumen, next to the pieces
        "volume", "vol", "v", "px_volume", "total_volume", "totalvolume", "trade_volume", "size", "qty", "quantity",
        "base_volume", "tick_volume", "tick_vol", "tickvol", "ticks", "volumefrom", "no_of_shares",
        "number_of_shares", "shares_traded", "volumen",
        "wolumen", "wol", "hac", "объём", "交易量", "成交量", "成交股數", "出来高", "거래량",
        "volym", "kl", "khối_lượng", "όγκος", "ปริมาณ", "נפח", "الحجم", "обсяг", "总手", "成交仟股", "成交股数",
        "売買高", "cshtrd",
    ),
    "vix_close": (
        "vix_close", "vix", "vix_last", "vixclose", "close_vix", "vix_index",
    ),
}  # fmt: skip
# Behind or in front of `date` and `time`: not when a bar begins
OTHER_TIMES = {
    "end", "close", "closing", "closed", "high", "low", "last", "next", "exp", "expiry", "expiration", "expire",
    "maturity", "update", "updated", "settlement", "ex", "dividend", "listing", "report", "created", "modified", "of",
    "first", "delivery",
}  # fmt: skip
# As they begin a word that is glued to `date` or `time`: Closetime, enddatetime, expirationdate
GLUED_TIMES = ("end", "clos", "expir", "maturity", "next", "last", "high", "low", "updat", "settle", "deliver", "life")
# What a column of times names as its zone: abbreviations that stand for one zone alone
ZONES = {"utc": "UTC", "gmt": "UTC", "eet": "Europe/Athens", "kst": "Asia/Seoul", "jst": "Asia/Tokyo"}
# Of a second column, where the first holds the day alone
CLOCK = (
    "time", "timestamp", "time_stamp", "hour", "time_of_day", "hora", "heure", "uhrzeit", "zeit", "czas", "saat",
    "время", "时间", "時間", "時刻", "시각", "시간", "timebarstart",
)  # fmt: skip
# What quote currencies are called behind `volume`, of which a pair's own coin is wanted
QUOTES = {
    "usd", "usdt", "usdc", "busd", "eur", "gbp", "jpy", "krw", "brl", "cny", "inr", "try", "rub", "chf", "cad", "aud",
    "twd", "hkd", "sgd", "mxn", "pln", "sek", "idr", "currency", "quote", "to",
}  # fmt: skip
# Behind `volume`: figures made of it, and parts of it, which are no volume
DERIVED = {
    "ma", "sma", "ema", "wma", "avg", "average", "mean", "median", "min", "max", "std", "stdev", "var", "volatility",
    "change", "chg", "pct", "percent", "ratio", "delta", "diff", "roc", "z", "zscore", "score", "norm", "normalized",
    "scaled", "log", "rank", "spike", "osc", "oscillator", "trend", "lag", "prev", "previous", "vwap", "weighted",
    "profile", "imbalance", "signal", "flag", "buy", "sell", "bid", "ask", "up", "down",
}  # fmt: skip
# In front of `volume`: money, or figures made of it. `vol` is short for volatility as well, but behind COUNTED
DESCRIBED = {"relative", "rel", "cum", "cumulative", "dollar", "notional", "turnover", "expected", "hist", "historical"}
COUNTED = {"traded", "trade", "tick", "total", "tot", "share", "shares", "base", "contract", "contracts", "real", "acc"}

"""RM51x, RM730, RM731: bars. RM57x: profiles and features. RM580 to RM584: tables."""

from __future__ import annotations

from trainer.runtime.codes.entry import CatalogEntry, entries

DATA: tuple[CatalogEntry, ...] = entries(
    (
        "RM510",
        "Data file cannot be read",
        "The file of bars is not there, or is no CSV text (plain, gzip, zstd, zip, bzip2, xz), Parquet or Arrow file.",
        "Check the path; `train` without --data uses the shipped sample.",
    ),
    (
        "RM511",
        "Data file is empty",
        "The file holds no header, or a header and not one row.",
        "Give a file with a header and at least one row.",
    ),
    (
        "RM512",
        "A column is missing",
        "Bars need a time, open, high, low, close and volume, each once, in a usual spelling; others are ignored.",
        "Name it with --columns date=NAME,close=NAME, or remove its duplicate.",
    ),
    (
        "RM513",
        "A row cannot be read",
        "A row has too few or too many cells, or a cell holds no valid number or date.",
        "Correct or delete the named line, or let --on-bad-row drop or repair such rows.",
    ),
    (
        "RM514",
        "A bar is impossible",
        "Prices and VIX must be above zero, volume not below it, and open and close between low and high.",
        "Correct or delete the line, or use --on-bad-row drop; a high below its low usually means swapped columns.",
    ),
    (
        "RM515",
        "Dates are out of order",
        "Each bar must be later than the one before it; features and the split by time rely on that.",
        "Sort the file by date and remove duplicates; --on-bad-row drop leaves such rows out, repair sorts them.",
    ),
    (
        "RM516",
        "Data file looks cut off",
        "The last line is not as those before it, or compressed data breaks off: the last number may have lost digits.",
        "Get the file again; to a text file that is complete add the missing line end, or use --on-bad-row drop.",
    ),
    (
        "RM517",
        "Too few rows",
        "Training, validation and test need rows each; bars lose some to lookback, horizon and embargo.",
        "Give more rows or bars; raise --data-fraction, or lower --horizon.",
    ),
    (
        "RM518",
        "The target never changes",
        "All training targets are equal, so there is nothing to learn.",
        "Check the column that is forecast, which is close for bars and the one named with `--target` for a table.",
    ),
    (
        "RM519",
        "The data are not like those of the training",
        "A model forecasts well only what is like the rows that it learned from: spacing, price steps, ranges.",
        "Give data like those of the training, or train a model on data like these.",
    ),
    (
        "RM571",
        "Volumes are too large to be counted",
        "Profiles count volume exactly, in millionths of a contract, and 64 bits hold no more than about 2e12.",
        "Give the volume in larger units, such as thousands.",
    ),
    (
        "RM572",
        "A profile has too many rows",
        "One price is far from the others, or the price step is far too small for this instrument.",
        "Correct the price, or raise --tick or --row-ticks.",
    ),
    (
        "RM573",
        "No such time zone",
        "Zones are named as in the IANA data base, America/New_York or UTC.",
        "Correct --time-zone or --session-zone.",
    ),
    (
        "RM574",
        "Dates can be read in two ways",
        "Day and month could be either way round, and both readings are in order.",
        "Name the format, such as --time-format '%d/%m/%Y %H:%M'.",
    ),
    (
        "RM575",
        "Some times name a zone, others do not",
        "A time without an offset from UTC is taken as wall clock, so a mix of both is usually two files in one.",
        "Correct the rows, or read them as they are written with --on-bad-row repair.",
    ),
    (
        "RM576",
        "A feature file is damaged",
        "The file or the metadata next to it is missing, or they do not belong together.",
        "Compute it again with `features --data FILE --out FILE`.",
    ),
    (
        "RM577",
        "The price step is unknown",
        "Profiles need the step in which prices move, and no usual one fits the prices of this file.",
        "Give it with --tick.",
    ),
    (
        "RM578",
        "No bar is within a session",
        "The hours of the session, its zone or the zone of the data do not fit the data.",
        "Correct --session, --session-zone or --time-zone.",
    ),
    (
        "RM579",
        "These features do not fit these bars",
        "Intraday features need several bars a session; features of days need a VIX column.",
        "Choose with --features, or give bars of another spacing.",
    ),
    (
        "RM580",
        "The table cannot be used as it is",
        "A column is missing or stands twice, a line has another number of cells, or a cell does not fit its column.",
        "Correct the file at the named place, or choose other columns with --target, --ignore and --categories.",
    ),
    (
        "RM581",
        "A value is missing",
        "The policy for missing values is `error`; the table has one, or the file of --join has none for a bar.",
        "Fill it in, or train with --missing fill or --missing drop.",
    ),
    (
        "RM582",
        "Nearly every value in the column is unique",
        "No classes can be learned from such a target; such an input is left out unless --categories names it.",
        "Choose another --target, or leave the column out with --ignore.",
    ),
    (
        "RM583",
        "The training split lacks a class or category",
        "No column has a value there, or more than 5 % of the rows are of classes with too few rows for every split.",
        "Give more rows; leave the column out with --ignore, or split otherwise with --time-column none.",
    ),
    (
        "RM584",
        "An unknown category",
        "The model was trained with --unknown error, and a row has a category that is not in the training data.",
        "Correct the word, or train again with --unknown zero.",
    ),
    (
        "RM730",
        "The file has no header, and its columns are not known",
        "Files without a header are read from Binance and Kraken, or as words, date, time of day and OHLCV in order.",
        "Name the columns by their numbers, such as --columns date=1,open=3,high=4,low=5,close=6,volume=7 where "
        "the second column is something else.",
    ),
    (
        "RM731",
        "A column that was named is not in the file",
        "--columns gives the name of a column as it stands in the header, or its number from 1.",
        "Correct the name; without --columns usual spellings are found.",
    ),
)

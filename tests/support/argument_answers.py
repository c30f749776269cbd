"""What Kafka's tool answered to command lines (JOpt Simple), by the rule that each shows."""

from __future__ import annotations

from pathlib import Path

EMPTY_FILES = ("0.log", "0.index", "0.timeindex")
API = "org.apache.kafka.tools.api."

Answer = tuple[int, str, str]

LOG: Answer = (0, "Dumping 0.log\nLog starting offset: 0\n", "")
VERSION: Answer = (0, "4.4.0\n", "")


def ignored(*names: str) -> Answer:
    return 0, "".join(f"Dumping {n}\n" for n in names), "".join(f"Ignoring unknown file {n}\n" for n in names)


def died(kind: str, message: str, stdout: str = "") -> Answer:
    return 1, stdout, f'Exception in thread "main" {kind}: {message}\n'


def unknown(name: str) -> Answer:
    return died("joptsimple.UnrecognizedOptionException", f"{name} is not a recognized option")


def no_value(name: str) -> Answer:
    return died("joptsimple.OptionMissingRequiredArgumentException", f"Option {name} requires an argument")


def no_number(value: str, option: str = "max-bytes", file: str = "0.log") -> Answer:
    message = f"Cannot parse argument '{value}' of option {option}"
    return died("joptsimple.OptionArgumentConversionException", message, f"Dumping {file}\n")


def many(option: str, file: str = "0.log") -> Answer:
    message = f"Found multiple arguments for option {option}, but you asked for only one"
    return died("joptsimple.MultipleArgumentsForOptionException", message, f"Dumping {file}\n")


NO_DECODER = died("java.lang.RuntimeException", "Failed to load decoder class", "Dumping 0.log\n")
X = ("--files", "x.unknown")
L = ("--files", "0.log")
IGNORED = ignored("x.unknown")

ANSWERS: dict[str, list[tuple[list[str], Answer]]] = {
    "a value follows behind a blank or an equals sign": [
        ([*L, "--max-bytes=5"], LOG),
        ([*L, "--max-bytes", "5"], LOG),
        (["--files=a=b"], ignored("a=b")),
        (["--files", "a.unknown=b"], ignored("a.unknown=b")),
    ],
    "one dash is as good as two for a whole name": [
        (["-files", "x.unknown"], IGNORED),
        (["-files=a=b"], ignored("a=b")),
        ([*L, "-max-bytes", "5"], LOG),
        ([*L, "-max-bytes=5"], LOG),
        ([*X, "-print-data-log"], IGNORED),
        (["-version"], VERSION),
    ],
    "of anything else behind one dash the first letter is the option": [
        ([*X, "-print-data-logx"], unknown("p")),
        ([*X, "-verify"], unknown("v")),
        (["-d", *L], unknown("d")),
        (["-h", *X], unknown("h")),
        (["-Wfoo"], unknown("W")),
        (["-W", "files=x"], unknown("W")),
        ([*X, "-üx"], unknown("ü")),
        ([*X, "-😀x"], unknown("?")),
        (["-=x"], unknown("=")),
        ([*X, "---"], unknown("-")),
    ],
    "names are not abbreviated, and their case matters": [
        (["--file", "0.log"], unknown("file")),
        (["--fil=0.log"], unknown("fil")),
        (["--d", *L], unknown("d")),
        (["---files", "0.log"], unknown("-files")),
        (["--Files", "x"], unknown("Files")),
        (["--HELP"], unknown("HELP")),
        (["--=x"], unknown("")),
        ([*X, "--ü=5"], unknown("ü")),
    ],
    "a required value is the next word, whatever it looks like": [
        (["--files", "--help"], ignored("--help")),
        (["--files=--help"], ignored("--help")),
        (["--files", "--"], ignored("--")),
        (["--files", "-"], ignored("-")),
        ([*L, "--max-bytes", "--deep-iteration"], no_number("--deep-iteration")),
        ([*L, "--max-bytes", "--"], no_number("--")),
        (["--files", "--", "--files"], no_value("files")),
        (["--help", "--files"], no_value("files")),
        (["--version", "--files"], no_value("files")),
        (["--max-bytes"], no_value("max-bytes")),
    ],
    "an optional value is the next word unless that is an option": [
        ([*L, "--value-decoder-class", "--deep-iteration"], LOG),
        ([*L, "--value-decoder-class", "--", "x"], LOG),
        ([*L, "--value-decoder-class", "--value-decoder-class"], LOG),
        ([*L, "--value-decoder-class", "--value-decoder-class", f"{API}StringDecoder"], LOG),
        ([*L, "--value-decoder-class", "-"], NO_DECODER),
        ([*L, "--value-decoder-class", "-x"], unknown("x")),
        ([*L, "--value-decoder-class", "-5"], unknown("5")),
    ],
    "an empty value is a value": [
        ([*L, "--value-decoder-class="], NO_DECODER),
        ([*L, "--value-decoder-class", ""], NO_DECODER),
        ([*L, "--max-bytes="], no_number("")),
        ([*L, "--max-bytes", ""], no_number("")),
        (["--files= "], ignored(" ")),
    ],
    "an option without a value takes none, and overlooks one that is given": [
        ([*L, "--deep-iteration=false"], LOG),
        ([*L, "--deep-iteration="], LOG),
        ([*L, "--deep-iteration", "false"], LOG),
        ([*L, "--deep-iteration", "--deep-iteration"], LOG),
        (["--version=x"], VERSION),
    ],
    "words that are no options are overlooked beside --files": [
        (["-", *L], LOG),
        (["", *X], IGNORED),
        ([*X, ""], IGNORED),
        ([*X, "[arguments]"], IGNORED),
        ([*L, "--"], LOG),
        ([*L, "--", "--"], LOG),
        ([*L, "--", "--nonsense"], LOG),
        (["x", "--version"], VERSION),
        (["--version", "x"], VERSION),
    ],
    "wrong names are found first": [
        (["--version", "--nonsense"], unknown("nonsense")),
        (["--nonsense", "--help"], unknown("nonsense")),
    ],
    "numbers are Java's, and looked at when they are needed": [
        ([*L, "--max-bytes", "+5"], LOG),
        ([*L, "--max-bytes", "005"], LOG),
        ([*L, "--max-bytes", "\u0665"], LOG),
        *(([*L, "--max-bytes", value], no_number(value)) for value in ("5 ", "many", "-", "+", "++5", "1_0", "5L")),
        *(
            ([*L, "--max-bytes", value], no_number(value))
            for value in ("2147483648", "-2147483649", "\U0001d7d3", "0x5")
        ),
        (
            [*L, "--max-bytes", "-5"],
            died(
                "java.lang.IllegalArgumentException",
                "Invalid size: -5 in read from FileRecords(size=0, file=0.log, start=0, end=2147483647)",
                LOG[1],
            ),
        ),
        ([*X, "--max-bytes", "many"], IGNORED),
        ([*L, "--max-message-size", "x"], LOG),
        (["--files", "0.timeindex", "--max-message-size=x"], (0, "Dumping 0.timeindex\n", "")),
        (["--files", "0.index", "--max-message-size", "x"], no_number("x", "max-message-size", "0.index")),
    ],
    "a repeated option is found when its single value is needed": [
        ([*L, "--max-bytes", "1", "--max-bytes", "2"], many("max-bytes")),
        ([*X, "--max-bytes", "5", "--max-bytes", "x"], IGNORED),
        ([*L, "--value-decoder-class=a", "--value-decoder-class=b"], many("value-decoder-class")),
        (
            ["--files", "0.index", "--max-message-size=1", "--max-message-size=2"],
            many("max-message-size", "0.index"),
        ),
        ([*X, "--max-message-size=1", "--max-message-size=2"], IGNORED),
    ],
    "files are split at commas, and empty ones at the end vanish": [
        (["--files", "x.unknown,"], IGNORED),
        (["--files", "x.unknown,,"], IGNORED),
        (["--files", ",x.unknown"], ignored("", "x.unknown")),
        (["--files", "x.unknown,,y.unknown"], ignored("x.unknown", "", "y.unknown")),
        (["--files=x.unknown,--help"], ignored("x.unknown", "--help")),
        (["--files", "x\ty z.unknown"], ignored("x\ty z.unknown")),
        (["--files=,"], (0, "", "")),
    ],
}


def lay_out(place: Path) -> None:
    """Make the empty files that the answers are about."""
    for name in EMPTY_FILES:
        (place / name).write_bytes(b"")

"""From the JSON file of a run to its table and pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import run
from benchmarks.pictures import drawn, growth
from benchmarks.results import Measurement, Ratio, identity_of, read_results
from benchmarks.table import absent_list, floor_text, result_table, row, speed_text
from benchmarks.targets import TARGETS, Target, target_table

KAFKA_TIMES = [0.04, 0.06, 0.08]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pytest that a run starts measure, which it would not as a child of pytest-xdist."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def written(path: Path, **extra: Any) -> Path:
    """A file as pytest-benchmark writes it: rounds of 10 calls, and one that has no floor."""
    info = {"title": "append", "calls": 10, "bytes": 1000, "count": 10, "unit": "records", "hash": "ab", "peers": {}}
    none = {**info, "title": "other", "calls": 1, "count": 7, "floor": {"none": "too short"}}
    benchmark = {
        "fullname": "benchmarks/bench_append.py::test_append[10]",
        "stats": {"data": [0.1, 0.2, 0.3]},
        "extra_info": {**info, **extra},
    }
    other = {"fullname": "benchmarks/bench_other.py::test_other", "name": "test_other", "stats": {"data": [1.0]}}
    other["extra_info"] = none
    path.write_text(json.dumps({"benchmarks": [benchmark, other]}))
    return path


def measurement(identity: str = "append::test_append[1]", **fields: Any) -> Measurement:
    return Measurement(
        **{
            "identity": identity,
            "title": "append",
            "times_s": [0.5],
            "size": 0,
            "count": 0,
            "unit": "records",
            "digest": "",
            **fields,
        }
    )


def test_results_are_times_of_one_call(tmp_path: Path) -> None:
    peers = {"Kafka": {"times_s": KAFKA_TIMES}, "aiokafka": {"absent": "not installed"}}
    floor = {"name": "write", "times_s": [0.001, 0.002, 0.003]}
    found, plain = read_results(written(tmp_path / "r.json", peers=peers, floor=floor))
    assert found.identity == "append::test_append[10]"
    assert found.times_s == pytest.approx([0.01, 0.02, 0.03])
    assert found.peers["Kafka"].median == pytest.approx(3)
    assert (found.peers["Kafka"].lowest, found.peers["Kafka"].highest) == pytest.approx((8 / 3, 4))
    assert found.absent == {"aiokafka": "not installed"}
    assert found.peers["Kafka"].round_count == 3
    assert found.floor == ("write", pytest.approx(0.05))  # its best round to our median
    assert found.rate == pytest.approx(500)
    assert (plain.title, plain.times_s, plain.rate) == ("other", [1.0], 7.0)
    assert (plain.floor, plain.floorless) == (None, "too short")


def test_a_side_with_other_rounds_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Ratio.of([1.0, 2.0], [1.0])


def test_a_row_says_all_of_a_measurement() -> None:
    found = measurement(
        title="append | 10",
        times_s=[0.002, 0.001, 0.003],
        size=4_000_000,
        count=4000,
        peers={"Kafka": Ratio(5.0, 4.0, 6.0, 3)},
        floor=("bare write", 0.25),
        digest="0123456789abcdef",
    )
    assert row(found) == (
        "| append / 10 | 2.00 ms | 1.00 ms | 2.00 GB/s, 2.00 M records/s "
        "| **5.0×** Kafka (4.0 to 6.0) | 25.0 % of bare write | 01234567 |"
    )
    assert len(result_table([found, found]).splitlines()) == 4
    assert (speed_text(measurement()), floor_text(measurement(floorless="none"))) == ("", "none")


def test_absent_peers_are_listed_once_with_the_reason() -> None:
    found = [measurement(absent={"Kafka": "java is not installed"})] * 3
    assert absent_list(found) == "- Kafka: java is not installed (3 benchmarks)"


@pytest.mark.parametrize(("seen", "words"), [(1.25, "yes"), (0.75, "**no**")])
def test_a_target_is_held_to_what_was_seen(seen: float, words: str) -> None:
    found = measurement(peers={"Kafka": Ratio(seen, seen, seen, 9)})
    line = next(line for line in target_table([found], ["append"], 1).splitlines() if "append, 1 records" in line)
    assert (
        line
        == f"| 30 | append, 1 records a call | ≥ 1.2× | {seen:.2f}× ({seen:.2f} to {seen:.2f}, 9 rounds) |  | {words} |"
    )


@pytest.mark.parametrize(("share", "words"), [(0.5, "1.5× | **no**"), (0.9, "0.8× | **no**, nor by the floor")])
def test_a_target_that_even_the_floor_misses_is_told_apart(share: float, words: str) -> None:
    found = measurement(peers={"Kafka": Ratio(0.75, 0.7, 0.8, 9)}, floor=("bare write", share))
    line = next(line for line in target_table([found], ["append"], 1).splitlines() if "append, 1 records" in line)
    assert line.endswith(f"| {words} |")


def test_another_peer_can_be_the_floor() -> None:
    target = Target(6, "sum", "spark::test", "source", 5, floor_peer="ready batches")
    found = measurement(peers={"source": Ratio(3, 3, 3, 9), "ready batches": Ratio(0.8, 0.75, 0.9, 9)})
    assert target.of_floor({"spark::test": found}) == (4.0, "4.0×")
    assert target.of_floor({"spark::test": measurement(peers={"source": Ratio(3, 3, 3, 9)})}) == (None, "")


@pytest.mark.parametrize(("ratio", "words"), [(0.9, "**no**"), (1.2, "not by crc32c either")])
def test_a_rate_is_asked_where_the_peer_reaches_it(ratio: float, words: str) -> None:
    peers = {"crc32c": Ratio(ratio, ratio, ratio, 9)}
    found = measurement("crc::test_crc_of_memory", peers=peers, times_s=[1.0], count=13_000_000_000, unit="bytes")
    line = next(line for line in target_table([found], ["crc"], 1).splitlines() if "CRC of 256 MiB" in line)
    assert line.endswith(f"| {words} |")


def test_a_target_without_its_peer_is_not_measured() -> None:
    found = measurement(absent={"Kafka": "java is not installed"})
    line = next(line for line in target_table([found], ["append"], 1).splitlines() if "append, 1 records" in line)
    assert line.endswith("| java is not installed |  | not measured |")


def test_rates_and_figures_can_be_targets() -> None:
    rate = Target(7, "CRC", "crc::test", least=10.0)
    figure = Target(3, "memory", "dump::test", figure="memory MiB", most=250)
    fast = {"crc::test": measurement(times_s=[0.1], count=2, unit="bytes")}
    assert rate.seen(fast) == (20.0, "20 bytes/s")
    assert rate.is_reached(20.0)
    large = {"dump::test": measurement(figures={"memory MiB": 300.0})}
    assert figure.seen(large) == (300.0, "300")
    assert not figure.is_reached(300.0)
    assert figure.asked == "≤ 250"


def test_nothing_is_said_to_be_reached_below_the_real_sizes() -> None:
    found = measurement(peers={"Kafka": Ratio(9, 9, 9, 3)})
    line = next(line for line in target_table([found], ["append"], 0.5).splitlines() if "append, 1 records" in line)
    assert line.endswith("| 9.00× (9.00 to 9.00, 3 rounds) |  | not at this size |")


def test_only_targets_of_the_operations_are_listed() -> None:
    table = target_table([], ["append"], 1)
    assert "append, 1 records a call" in table
    assert "not in this run" in table
    assert "recovery" not in table


def test_every_target_names_a_benchmark_that_there_is() -> None:
    command = [sys.executable, "-m", "pytest", *run.PYTEST_OPTIONS, "--collect-only", "benchmarks"]
    environment = {**os.environ, "LOGSTORE_BENCH_SCALE": "1"}
    done = subprocess.run(command, cwd=run.ROOT, env=environment, capture_output=True, text=True, check=True)
    collected = {identity_of(line) for line in done.stdout.splitlines() if "::" in line}
    assert len(collected) > 100
    named = {target.identity for target in TARGETS if target.identity is not None}
    assert named - collected == set()
    assert all(target.missing for target in TARGETS if target.identity is None)


def test_points_of_a_picture_are_drawn_on_their_lines() -> None:
    found = [
        measurement(growth=("segments", series, size), times_s=[size * factor])
        for series, factor in (("ours", 1e-6), ("Kafka's <log>", 1e-5))
        for size in (100, 1, 10)
    ]
    pictures = growth(found)
    assert [size for size, _ in pictures["segments"]["ours"]] == [1, 10, 100]
    root = ElementTree.fromstring(drawn("segments", pictures["segments"]))
    circles = root.findall(f"{SVG}circle")
    assert len(circles) == 6
    heights = [float(circle.attrib["cy"]) for circle in circles[:3]]
    assert heights == sorted(heights, reverse=True)
    assert {"ours", "Kafka's <log>", "1 µs", "100"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_peers_have_lines_of_their_own() -> None:
    found = measurement(growth=("segments", "append", 5), times_s=[2.0], peers={"Kafka": Ratio(3.0, 3.0, 3.0, 9)})
    assert growth([found]) == {"segments": {"append": [(5, 2.0)], "append, Kafka": [(5, 6.0)]}}


def test_a_point_alone_can_be_drawn() -> None:
    assert ElementTree.fromstring(drawn("partitions", {"open": [(1, 2e-9)]})).findall(f"{SVG}circle")


def test_a_run_writes_its_table_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGSTORE_BENCH_PEERS", "off")
    (tmp_path / "growth-old.svg").write_text("of an earlier run")
    assert run.main(["--only", "crc", "--scale", "0", "--seconds", "0.01", "--out", str(tmp_path)]) == 0
    table = (tmp_path / "table.md").read_text()
    assert capsys.readouterr().out.endswith(table)
    assert '`make bench ONLY="crc" SCALE=0`' in table
    assert "| CRC of 64 bytes | " in table
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "growth-bytes-of-a-batch.svg",
        "results.json",
        "table.md",
    ]


def test_a_run_in_which_nothing_is_measured_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "pytest_command", lambda chosen, path: ["false"])
    assert run.main(["--out", str(tmp_path)]) == 1

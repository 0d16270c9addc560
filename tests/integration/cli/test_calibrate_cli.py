"""`opscope calibrate` and `opscope validate` from end to end: files that load, gates, and one line for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.cli import main
from opscope.machine import catalogue
from opscope.machine.catalogue import with_figures
from opscope.machine.target import Figure, Target
from support.estimate.measured_rows import csv_text, make_networks, rows_of

SHIPPED = [name for name in catalogue.catalogue() if catalogue.load(name).calibration is not None]


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks, and what a machine with half the clock and twice the call would have measured."""
    folder = tmp_path_factory.mktemp("nets")
    models = make_networks(folder, ("kws", "small", "fc", "mobile", "vit"))
    base = catalogue.load("hexagon")
    for chip, clock in (("slow", 0.7e9), ("fast", 2.0e9)):
        truth = with_figures(base, {"clocks.core_hz": Figure(clock, "part"), "call_seconds.f16": Figure(5e-4, "part")})
        (folder / f"{chip}.csv").write_text(csv_text(rows_of(truth, models, chip=chip)), encoding="utf-8")
    return folder


def opscope(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture(scope="module")
def fitted(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fitted") / "deep" / "mine.toml"
    assert main(["calibrate", "hexagon", "--from", str(nets / "slow.csv"), "-o", str(path)]) == 0
    return path


def test_the_written_target_loads_and_extends_its_base(fitted: Path) -> None:
    text, base = fitted.read_text(encoding="utf-8"), catalogue.load("hexagon")
    assert 'extends = "hexagon"' in text
    target = catalogue.load(str(fitted))
    assert (target.name, target.engines[0].name) == ("mine", "HTP")
    assert target.clocks.core_hz.value < 0.8 * base.clocks.core_hz.value
    assert target.clocks.core_hz.source == "fit"
    assert "slow.csv" in target.sources["fit"]
    assert target.calibration is not None
    assert (target.calibration.rows, target.calibration.networks) == (5, 5)
    assert target.validation is not None
    assert target.validation.source in target.sources


def test_a_fitted_target_is_itself_a_base(fitted: Path, nets: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.toml"
    assert main(["calibrate", str(fitted), "--from", str(nets / "slow.csv"), "-o", str(again)]) == 0
    assert catalogue.load(str(again)).engines[0].name == "HTP"


def test_the_same_rows_write_the_same_bytes(fitted: Path, nets: Path, tmp_path: Path) -> None:
    again = tmp_path / "mine.toml"
    assert main(["calibrate", "hexagon", "--from", str(nets / "slow.csv"), "-o", str(again)]) == 0
    assert again.read_bytes() == fitted.read_bytes()
    assert again.with_suffix(".calibration.json").read_bytes() == fitted.with_suffix(".calibration.json").read_bytes()


def test_the_document_beside_it_has_every_row_and_figure(fitted: Path) -> None:
    found = json.loads(fitted.with_suffix(".calibration.json").read_text(encoding="utf-8"))
    assert found["schema"] == "opscope.calibration/1"
    assert [row["network"] for row in found["rows"]] == ["kws", "small", "fc", "mobile", "vit"]
    for row in found["rows"]:
        assert row["low_ms"] < row["predicted_ms"] < row["high_ms"]
        assert row["error"] == pytest.approx(row["predicted_ms"] / row["measured_ms"] - 1)
        assert row["inside"] is (row["low_ms"] <= row["measured_ms"] <= row["high_ms"])
        assert row["left_out"] is True
    clock = found["figures"]["hexagon"]["clocks.core_hz"]
    assert clock["low"] <= clock["value"] <= clock["high"]
    assert clock["data_sheet"] == catalogue.load("hexagon").clocks.core_hz.value


def test_the_page_beside_it_has_every_row_and_opens_alone(fitted: Path) -> None:
    text = fitted.with_suffix(".calibration.html").read_text(encoding="utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    rows = json.loads(fitted.with_suffix(".calibration.json").read_text(encoding="utf-8"))["rows"]
    assert (data["schema"], data["target"]) == ("opscope.calibration-page/1", "hexagon")
    assert [row["network"] for row in data["rows"]] == [row["network"] for row in rows]
    for shown, row in zip(data["rows"], rows, strict=True):
        assert shown["predicted_ns"] == pytest.approx(row["predicted_ms"] * 1e6)
        assert shown["inside"] is row["inside"]
    assert {group["by"] for group in data["groups"]} >= {"all", "network"}
    assert data["next"].startswith("networks that spend their time in ")
    assert "connect-src &#x27;none&#x27;" in text


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ("small,1e8", "measured 100,000 s; ranges of the figures allow"),
        ("small,1e-9", "ranges of the figures allow"),
        ("small,1e30", "expected a time above 0 and below 1e+09"),
        ("small,0", "expected a time above 0"),
    ],
)
def test_times_that_no_machine_has_are_one_line(
    rows: str, answer: str, nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text(f"model,latency_ms\n{rows}\n", encoding="utf-8")
    arguments = ("--from", tmp_path / "rows.csv", "--models", nets, "-o", tmp_path / "out.toml")
    code, out, err = opscope(capsys, "calibrate", "hexagon", *arguments)
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert answer in err
    assert not (tmp_path / "out.toml").exists()


def test_rows_that_contradict_each_other_are_named_and_a_fit_of_one_says_so(
    nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("model,latency_ms\nsmall,0.4\nsmall,4\nsmall,0.4\n", encoding="utf-8")
    arguments = ("--from", tmp_path / "rows.csv", "--models", nets, "-o", tmp_path / "out.toml")
    code, out, _ = opscope(capsys, "calibrate", "hexagon", *arguments)
    assert code == 0
    assert "differ by a factor of 10; the median counts" in out
    assert "too few networks to leave one out" in out


def test_validate_tells_and_judges(fitted: Path, nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = nets / "slow.csv"
    code, out, err = opscope(capsys, "validate", fitted, "--from", rows, "--max-median", "10%", "--min-coverage", "0.8")
    assert (code, err) == (0, "")
    assert "median error" in out
    assert "FAIL" not in out
    code, out, _ = opscope(capsys, "validate", "hexagon", "--from", rows, "--max-median", "10%", "--max-p90", "0.2")
    assert code == 1
    assert [line.partition(" is ")[0] for line in out.splitlines() if line.startswith("FAIL")] == [
        "FAIL: median error",
        "FAIL: 90th percentile of errors",
    ]


def test_validate_as_json(fitted: Path, nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = opscope(capsys, "validate", "hexagon", "--from", nets / "slow.csv", "--json", "--max-median", "1%")
    found = json.loads(out)
    assert code == 1
    assert (found["schema"], found["all"]["rows"], len(found["failed"])) == ("opscope.calibration/1", 5, 1)


def test_energies_and_peaks_of_ram_are_fitted_and_judged_beside_latencies(
    nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["model,latency_ms,energy_uj,ram_bytes", "kws,60,1500,22000", "small,9,230,", "fc,30,800,"]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    mine, given = tmp_path / "mine.toml", ("--from", tmp_path / "rows.csv", "--models", nets)
    code, out, _ = opscope(capsys, "calibrate", "cortex-m33", *given, "-o", mine)
    assert code == 0
    assert "energy, energy_uj" in out
    assert "engines[0].busy_watts" in out
    document = json.loads(mine.with_suffix(".calibration.json").read_text(encoding="utf-8"))
    assert [row["measured_uj"] for row in document["energy"]["rows"]] == pytest.approx([1500, 230, 800])
    assert [row["measured_bytes"] for row in document["ram"]["rows"]] == [22000]
    assert document["energy"]["calibration"]["rows"] == 3
    assert "network: energy" in mine.with_suffix(".calibration.html").read_text(encoding="utf-8")
    assert catalogue.load(str(mine)).energy.validation is not None
    code, out, _ = opscope(capsys, "validate", mine, *given, "--max-median", "0.01%")
    assert code == 1
    assert "FAIL: median error of energy_uj is" in out
    assert "FAIL: median error of ram_bytes is" in out


@pytest.mark.parametrize("word", ["much", "-1%", "nan", "inf", ""])
def test_a_limit_that_is_no_share_is_refused(word: str, nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = opscope(capsys, "validate", "hexagon", "--from", nets / "slow.csv", f"--max-median={word}")
    assert code == 2
    assert "expected 20% or 0.2" in err


def test_by_chip_writes_one_for_each_and_one_for_any_other(
    nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = (nets / "slow.csv", nets / "fast.csv")
    code, out, _ = opscope(capsys, "calibrate", "hexagon", "--from", *sources, "--by", "chip", "-o", tmp_path)
    assert code == 0
    assert "on 2 chips" in out
    names = ["calibration.html", "calibration.json", "fast.toml", "hexagon-any.toml", "slow.toml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    slow, fast, other = (catalogue.load(str(tmp_path / f"{name}.toml")) for name in ("slow", "fast", "hexagon-any"))
    assert slow.clocks.core_hz.value < other.clocks.core_hz.value < fast.clocks.core_hz.value
    assert _width(other) > max(_width(slow), _width(fast))
    code, out, _ = opscope(capsys, "validate", tmp_path / "slow.toml", "--from", *sources, "--json")
    assert code == 0
    assert {row["chip"] for row in json.loads(out)["rows"]} == {"slow"}  # of the target; others are left out


def _width(target: Target) -> float:
    return target.clocks.core_hz.largest / target.clocks.core_hz.smallest


@pytest.mark.parametrize("chip", ["", "..", "a/b", ".hidden"])
def test_a_chip_whose_name_is_no_file_is_refused(
    chip: str, nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text(f"model,latency_ms,chip\nkws,1,{chip}\n", encoding="utf-8")
    arguments = ("--from", tmp_path / "rows.csv", "--models", nets, "--by", "chip", "-o", tmp_path / "out")
    code, _, err = opscope(capsys, "calibrate", "hexagon", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert "no name for a file" in err


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ("kws,1", "1 measurements of 1 networks"),
        ("kws,1\nkws,1", "1 measurements of 1 networks"),
        ("kws,1\nkws,5", "1 measurements of 1 networks"),
        ("kws,1\nvit,1e7\nfc,0.000001", "note: rows.csv:4: measured 1 ns; ranges of the figures allow"),
        ("kws,1\nbroken,3", "note: rows.csv:3"),
    ],
)
def test_odd_rows_get_an_answer_and_figures_that_load(
    rows: str, answer: str, nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nets / "broken.onnx").write_bytes(b"\x08\x01nonsense")
    (tmp_path / "rows.csv").write_text(f"model,latency_ms\n{rows}\n", encoding="utf-8")
    arguments = ("--from", tmp_path / "rows.csv", "--models", nets)
    code, out, _ = opscope(capsys, "calibrate", "hexagon", *arguments, "-o", tmp_path / "out.toml")
    assert code == 0
    assert answer in out
    assert catalogue.load(str(tmp_path / "out.toml")).calibration is not None
    assert opscope(capsys, "validate", tmp_path / "out.toml", *arguments)[0] == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "no column 'model'"),
        (b"model\nkws\n", "no column 'latency_ms'"),
        (b"model,latency_ms\nkws,nan\n", "expected a time above 0"),
        (b"model,latency_ms\nkws,\xff\n", "not CSV text"),
        (b"model,latency_ms\nbroken,1\n", "none of 1 measurements can be predicted"),
        (b"model,latency_ms,precision\nkws,1,w9a9\n", "none of 1 measurements can be predicted"),
        (b"model,latency_ms,cores\nkws,1,999\n", "none of 1 measurements can be predicted"),
        (b"model,latency_ms,shapes\nkws,1,nothing=1x2\n", "none of 1 measurements can be predicted"),
        (bytes(range(256)) * 64, "rows.csv: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(
    content: bytes, problem: str, nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nets / "broken.onnx").write_bytes(b"\x08\x01nonsense")
    (tmp_path / "rows.csv").write_bytes(content)
    for verb, output in (("calibrate", ("-o", tmp_path / "out.toml")), ("validate", ())):
        code, out, err = opscope(capsys, verb, "hexagon", "--from", tmp_path / "rows.csv", "--models", nets, *output)
        assert (code, out) == (2, "")
        assert problem in err
        assert err.count("\n") == 1
    assert not (tmp_path / "out.toml").exists()


def test_calibrate_asks_for_a_file_to_write(nets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = opscope(capsys, "calibrate", "hexagon", "--from", nets / "slow.csv")
    assert code == 2
    assert "no -o; expected the file that gets the fitted target" in err


def test_targets_of_many_parts_are_shipped() -> None:
    assert len(SHIPPED) >= 17


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_target_that_was_fitted_says_how_far_it_is_off(name: str) -> None:
    target = catalogue.load(name)
    assert target.calibration is not None
    assert target.validation is not None
    assert target.validation.rows >= target.validation.networks > 0
    assert 0 < target.validation.median_error < target.validation.p90_error
    assert target.calibration.rows >= target.validation.rows
    assert target.calibration.seen.keys() <= dict(catalogue.figures(target)).keys()

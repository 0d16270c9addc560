"""The command line in a temporary folder: exit codes, both streams, files written."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from opscope.cli import verbs
from opscope.core.files import replacing, write_whole
from opscope.machine import catalogue as targets
from opscope.zoo import Recipe, make
from support.cli.command_line import Outcome, called

OPSCOPE = [sys.executable, "-c", "import sys; from opscope.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def resnet(folder: Path) -> Path:
    path = folder / "resnet.tflite"
    make(Recipe("cifar-resnet", format="tflite"), path)
    return path


@pytest.fixture(scope="module")
def keywords(folder: Path) -> Path:
    path = folder / "kws.onnx"
    make(Recipe("kws-cnn", precision="int8"), path)
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> object:
    """`run("report", …)` in this process."""
    return partial(called, capsys)


def spawn(*arguments: object, **options: object) -> Outcome:
    """The same in a process of its own."""
    done = subprocess.run(
        [*OPSCOPE, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60, **options
    )  # type: ignore[call-overload]
    return Outcome(done.returncode, done.stdout, done.stderr)


def replacing_of_the_zoo(path: Path, render: Callable[[BinaryIO], object]) -> None:
    with replacing(path) as out:
        render(out)


class TestReport:
    def test_goes_to_stdout_and_nothing_to_stderr(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample")
        assert (found.code, found.err) == (0, "")
        assert found.out.startswith("resnet on Sample profile")
        assert "PER-LAYER PERFORMANCE" in found.out

    def test_is_the_same_bytes_twice(self, run, resnet) -> None:
        first, second = (run("report", resnet, "--target", "cfs-sample", "--format", "json") for _ in range(2))
        assert first == second

    def test_as_json_parses_and_carries_the_hash_of_the_file(self, run, resnet) -> None:
        document = json.loads(run("report", resnet, "--target", "cfs-sample", "--format", "json").out)
        assert document["schema"] == "opscope.report/1"
        assert len(document["model"]["sha256"]) == 64
        assert document["model"]["file_bytes"] == resnet.stat().st_size
        assert document["hardware"]["power_mw"] is None

    def test_as_markdown_and_html_is_what_it_says(self, run, resnet) -> None:
        assert run("report", resnet, "--target", "cfs-sample", "--format", "md").out.startswith("# resnet on")
        assert "<html" in run("report", resnet, "--target", "cfs-sample", "--format", "html").out[:2000].lower()

    def test_shows_all_layers_or_the_top_ones(self, run, keywords) -> None:
        assert "slowest of" in run("report", keywords, "--target", "max32690-cm4", "--top", "2").out
        assert "slowest of" not in run("report", keywords, "--target", "max32690-cm4", "--all").out

    def test_without_advice_has_no_suggestions(self, run, resnet) -> None:
        for extra in ((), ("--compat", "cfs")):
            found = run("report", resnet, "--target", "cfs-sample", "--no-advice", "--format", "json", *extra)
            assert json.loads(found.out)["opportunities"]["suggestions"] == []

    def test_takes_cores_and_a_batch(self, run, keywords) -> None:
        def latency(*extra: object) -> float:
            found = run("report", keywords, "--target", "aic100-std", "--format", "json", "--no-advice", *extra)
            return json.loads(found.out)["hardware"]["latency_ms"]

        assert latency("--cores", 14) <= latency("--cores", 1)

    def test_takes_a_target_of_your_own(self, run, resnet, tmp_path) -> None:
        mine = tmp_path / "mychip.toml"
        text = targets.catalogue()["cfs-sample"].read_text().replace('name = "cfs-sample"', 'name = "mychip"')
        mine.write_text(text)
        found = run("report", resnet, "--target", mine, "--format", "json")
        assert json.loads(found.out)["target"]["name"] == "mychip"

    def test_by_flat_counting_prints_the_tables(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "--compat", "cfs")
        assert found.out.startswith("=== MODEL SUMMARY ===\n")


class TestBudget:
    def test_that_is_kept_exits_0_and_says_so_on_stderr(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "--budget", "ram=1MB,latency=1s")
        assert found.code == 0
        assert found.err == "ok    budget ram: 192.00 KB of 1.00 MB\nok    budget latency: 126 ms of 1 s\n"

    def test_that_breaks_exits_1_and_names_which_and_by_how_much(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "--budget", "ram=128KB,latency=1s")
        assert found.code == 1
        assert found.err.splitlines()[0] == "FAIL  budget ram: 192.00 KB of 128.00 KB (50.0% over)"
        assert found.err.splitlines()[1].startswith("ok    budget latency")
        assert "PER-LAYER" in found.out  # the report is still there to read

    def test_that_makes_no_sense_exits_2(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "--budget", "speed=1")
        assert "expected NAME=LIMIT with ram, flash, latency, energy, cpu-share" in found.one_line()

    def test_leaves_json_on_stdout_alone(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "--format", "json", "--budget", "latency=1ns")
        assert found.code == 1
        json.loads(found.out)


class TestOutput:
    def test_goes_to_the_file_and_its_path_to_stderr(self, run, resnet, tmp_path) -> None:
        path = tmp_path / "report.json"
        found = run("report", resnet, "--target", "cfs-sample", "--format", "json", "-o", path)
        assert (found.code, found.out, found.err) == (0, "", f"wrote {path}\n")
        json.loads(path.read_text(encoding="utf-8"))
        assert list(tmp_path.iterdir()) == [path]

    def test_replaces_an_earlier_report_and_has_the_usual_permissions(self, run, resnet, tmp_path) -> None:
        path = tmp_path / "report.txt"
        path.write_text("old")
        run("report", resnet, "--target", "cfs-sample", "-o", path)
        assert path.read_text(encoding="utf-8").startswith("resnet on")
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask

    def test_never_replaces_the_model(self, run, resnet, tmp_path) -> None:
        model = tmp_path / "copy.tflite"
        model.write_bytes(resnet.read_bytes())
        for words in (
            ("report", model, "--target", "cfs-sample", "-o", tmp_path / "." / "copy.tflite"),
            ("cfsai", "profile", "--model", model, "--target", "cfs-sample", "--json-file", model),
        ):
            assert "is the model itself; expected another file" in run(*words).one_line()
        assert model.read_bytes() == resnet.read_bytes()

    def test_into_a_folder_that_is_not_there_is_refused_in_one_line(self, run, resnet, tmp_path) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "-o", tmp_path / "no" / "report.txt")
        assert (
            "report.txt: cannot be written (No such file or directory); expected a writable place" in found.one_line()
        )

    def test_onto_a_folder_leaves_nothing_behind(self, run, resnet, tmp_path) -> None:
        (tmp_path / "taken").mkdir()
        found = run("report", resnet, "--target", "cfs-sample", "-o", tmp_path / "taken")
        assert "taken: cannot be written (Is a directory)" in found.one_line()
        assert [path.name for path in tmp_path.iterdir()] == ["taken"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
    def test_into_a_folder_without_permission_is_refused(self, run, resnet, tmp_path) -> None:
        tmp_path.chmod(0o500)
        found = run("report", resnet, "--target", "cfs-sample", "-o", tmp_path / "report.txt")
        tmp_path.chmod(0o700)
        assert "Permission denied" in found.one_line()

    def test_to_a_dash_is_to_stdout(self, run, resnet, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        found = run("report", resnet, "--target", "cfs-sample", "--json", "-o", "-")
        assert (found.code, found.err) == (0, "")
        assert found.out == run("report", resnet, "--target", "cfs-sample", "--format", "json").out
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("write", [replacing_of_the_zoo, write_whole], ids=["zoo", "api"])
    def test_to_a_pipe_writes_into_it_and_does_not_replace_it(self, tmp_path, write) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        write(pipe, lambda out: out.write(b"model"))
        assert os.read(reader, 100) == b"model"
        os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert list(tmp_path.iterdir()) == [pipe]

    def test_to_a_device_writes_into_it_and_does_not_replace_it(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "cfs-sample", "-o", "/dev/null")
        assert found.code == 0
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)

    def test_that_fails_half_way_keeps_the_old_file_and_leaves_no_other(
        self, run, resnet, tmp_path, monkeypatch
    ) -> None:
        from opscope.views.json.report_json import ReportJson

        path = tmp_path / "report.json"
        path.write_text("old")

        def break_off(_self: ReportJson, _report: object, out: object) -> None:
            out.write("{")  # type: ignore[attr-defined]
            raise KeyboardInterrupt

        monkeypatch.setattr(ReportJson, "render", break_off)
        found = run("report", resnet, "--target", "cfs-sample", "--format", "json", "-o", path)
        assert (found.code, found.err) == (130, "opscope: interrupted\n")
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


class TestWrongUse:
    def test_of_a_target_name_suggests_the_nearest_entry(self, run, resnet) -> None:
        found = run("report", resnet, "--target", "max32690")
        assert "opscope: max32690: no such target; did you mean max32690-cm4? expected one of the" in found.one_line()

    def test_of_a_model_that_is_not_there(self, run, tmp_path) -> None:
        found = run("report", tmp_path / "gone.onnx", "--target", "cfs-sample")
        assert "gone.onnx: cannot be read (No such file or directory); expected a model file" in found.one_line()

    @pytest.mark.parametrize("junk", [b"", b"hello", bytes(1000), b"\x08\x08\x12\x04"])
    def test_of_a_file_that_is_no_model(self, run, tmp_path, junk) -> None:
        path = tmp_path / "model.onnx"
        path.write_bytes(junk)
        assert str(path) in run("report", path, "--target", "cfs-sample").one_line()

    def test_of_a_folder_as_a_model(self, run, tmp_path) -> None:
        assert "a folder; expected a model file" in run("report", tmp_path, "--target", "cfs-sample").one_line()

    def test_of_an_input_name(self, run, keywords) -> None:
        found = run("report", keywords, "--target", "cfs-sample", "--shape", "nothing=1x2x3")
        assert "nothing" in found.one_line()

    @pytest.mark.parametrize("shape", ["x", "x=", "x=axb", "=1x2", "x=1x-2"])
    def test_of_the_form_of_a_shape(self, run, keywords, shape) -> None:
        found = run("report", keywords, "--target", "cfs-sample", "--shape", shape)
        assert found.code == 2
        assert "is not of the form NAME=1x3x224x224" in found.err

    @pytest.mark.parametrize("option", ["--batch", "--cores", "--devices", "--top"])
    @pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
    def test_of_a_count(self, run, keywords, option, value) -> None:
        found = run("report", keywords, "--target", "cfs-sample", option, value)
        assert found.code == 2
        assert "is not a whole number of at least 1" in found.err or "expected one argument" in found.err

    def test_of_more_cores_than_there_are(self, run, keywords) -> None:
        found = run("report", keywords, "--target", "aic100-std", "--cores", 99)
        assert "--cores 99: aic100-std has 14; expected 1 to 14" in found.one_line()

    def test_of_a_broken_target_file_names_file_and_key(self, run, keywords, tmp_path) -> None:
        mine = tmp_path / "mychip.toml"
        mine.write_text(targets.catalogue()["cfs-sample"].read_text().replace('ops = ["conv"]', 'ops = ["convv"]'))
        found = run("report", keywords, "--target", mine)
        assert "mychip.toml: key engines[0].ops: 'convv' is not known; did you mean conv?" in found.one_line()

    @pytest.mark.parametrize("words", [["fly"], ["report"], ["report", "m", "--target"], ["--nonsense"]])
    def test_of_words_is_one_line_that_says_where_the_help_is(self, run, words) -> None:
        verb = " report" if words[0] == "report" else ""
        assert run(*words).one_line().endswith(f"see `opscope{verb} --help`\n")

    def test_of_a_verb_or_an_option_is_answered_with_the_nearest(self, run) -> None:
        assert (
            run("analyse", "x.run").one_line().startswith("opscope: analyse: no such verb; did you mean analyze? see")
        )
        found = run("profile", "m.onnx", "--targt=aic100-std")
        assert "unrecognized arguments: --targt=aic100-std; did you mean --target? see" in found.one_line()

    @pytest.mark.parametrize("target", ["aic100-std", "max32690-cm4"])
    def test_of_a_model_to_profile_that_is_not_there_or_is_a_folder(self, run, tmp_path, target) -> None:
        for name, reason in (("gone.onnx", "cannot be read (No such file or directory)"), (".", "a folder")):
            found = run("profile", tmp_path / name, "--target", target, "-o", tmp_path / "x.run")
            assert found.one_line() == f"opscope: {tmp_path / name}: {reason}; expected a model file\n"
        assert list(tmp_path.iterdir()) == []

    def test_of_a_backend_lists_our_own_too(self, run, keywords) -> None:
        found = run("profile", keywords, "--backend", "simm")
        assert "backend 'simm': not known; did you mean sim? known: sim, estimate, " in found.one_line()

    def test_of_an_option_of_another_backend_names_those_that_fit(self, run, keywords) -> None:
        found = run("profile", keywords, "--target", "max32690-cm4", "--num-iter", 2)
        wanted = "--num-iter: not an option of backend estimate; expected of --batch, --cores, --devices"
        assert wanted in found.one_line()

    @pytest.mark.parametrize(
        ("words", "able"),
        [
            (["--output-chrome-trace", "t.json"], "ort, torch, vela, litert, htp, sophgo, torq"),
            (["--qhas", "json"], "ort, torch, vela, litert, htp, sophgo, torq"),
        ],
    )
    def test_of_what_our_own_backends_do_not_do_is_not_passed_over(self, run, keywords, words, able) -> None:
        found = run("profile", keywords, "--target", "aic100-std", *words)
        assert f"{words[0]}: not an option of backend sim; expected a runtime such as {able};" in found.one_line()

    def test_none_of_advice_where_no_choices_can_be_tried_but_rewrites_fit(self, run, keywords, tmp_path) -> None:
        found = run("profile", keywords, "--target", "aic100-std", "--advise", "-o", tmp_path / "x.run")
        assert found.code == 0

    def test_of_outputs_without_execution_is_not_passed_over(self, run, keywords) -> None:
        found = run("profile", keywords, "--target", "aic100-std", "--outputs", "x.npz")
        assert "--outputs: nothing is executed; expected --backend htp or torq --execute too" in found.one_line()

    def test_of_a_share_names_the_option(self, run, keywords) -> None:
        found = run("profile", keywords, "--target", "aic100-std", "--baseline", "x", "--max-regression", "5")
        assert found.one_line() == "opscope: --max-regression '5': not understood; expected a share such as 10%\n"

    def test_of_the_zoo_s_word_for_a_precision_is_answered_with_the_type(self, run, keywords, tmp_path) -> None:
        found = run("profile", keywords, "--target", "aic100-std", "--precision", "int8", "-o", tmp_path / "x.run")
        assert "--precision int8: not known; did you mean i8? expected one of" in found.one_line()

    def test_of_an_abbreviated_option(self, run, keywords) -> None:
        assert run("report", keywords, "--targ", "cfs-sample").code == 2


class TestHelp:
    @pytest.mark.parametrize("verb", list(verbs()))
    def test_of_every_verb_shows_examples(self, run, verb) -> None:
        found = run(verb, "--help")
        assert (found.code, found.err) == (0, "")
        assert f"examples:\n  opscope {verb}" in found.out

    def test_without_a_verb_lists_them_all(self, run) -> None:
        found = run()
        assert found.code == 0
        assert all(f"\n  {verb} " in found.out for verb in verbs())
        assert "Exit codes: 0 fine, 1 a budget or gate failed, 2 wrong usage" in found.out

    def test_an_option_in_place_of_a_verb_is_refused(self, run) -> None:
        words = "opscope: --target: no such verb; did you mean targets? see `opscope --help`\n"
        assert run("--target", "cpu").one_line() == words

    def test_has_a_version(self, run) -> None:
        assert run("--version").out.startswith("opscope 0.")


class TestTargets:
    def test_are_listed(self, run) -> None:
        found = run("targets")
        assert (found.code, found.err) == (0, "")
        assert all(f"\n{name} " in found.out for name in targets.catalogue())
        assert {row["name"] for row in json.loads(run("targets", "--json").out)} > set(targets.catalogue())

    @pytest.mark.parametrize("name", list(targets.catalogue()))
    def test_are_shown_with_the_source_of_every_figure(self, run, name) -> None:
        text = run("targets", "show", name).out
        target = targets.load(name)
        for place, figure in targets.figures(target):
            line = next(line for line in text.splitlines() if line.startswith(f"{place} "))
            assert line.endswith(figure.source)
        assert all(f"\n{key}: {words}" in text for key, words in target.sources.items())

    def test_are_found_by_any_of_their_names(self, run) -> None:
        found = json.loads(run("targets", "--search", "snapdragon 8 ELITE galaxy", "--json").out)
        assert {"sm8750", "sm8850"} <= {row["name"] for row in found}
        assert all("Snapdragon 8 Elite" in " ".join(row["aliases"]) or "snapdragon" in row["name"] for row in found)
        nothing = run("targets", "--search", "zzz")
        assert (nothing.code, nothing.out) == (0, "")
        assert nothing.err == "note: nothing is called 'zzz'; `opscope targets` lists everything\n"

    def test_of_which_no_file_is_there_are_shown_too(self, run) -> None:
        for row in json.loads(run("targets", "--json").out):
            assert json.loads(run("targets", "show", row["name"], "--json").out)["entry"] == row
        text = run("targets", "show", "snapdragon-8-elite").out
        assert text.startswith(
            "sm8750: Snapdragon 8 Elite, HTP v79, 8 MB VTCM\nalso called QCS8750, Snapdragon 8 Elite"
        )
        assert "\n--backend htp --soc SM8750: estimated, compiler-fact of onnx models" in text
        assert "\ncore_hz " in text
        assert "\nhvx-manual: Qualcomm" in text

    def test_are_not_mixed_up_with_parts_that_are_at_odds(self, run, keywords) -> None:
        found = run("profile", keywords, "--target", "sa8255", "--soc", "SM8650")
        assert "--soc SM8650: is not the target sa8255; expected one of them, or the same part" in found.one_line()

    def test_are_parts_of_a_what_if_where_its_backend_knows_them(self, run, keywords) -> None:
        found = run("whatif", keywords, "--target", "sa8255,sm8650", "--soc", "SM8650")
        assert "--target: --soc is given too; expected one of them" in found.one_line()
        found = run("whatif", keywords, "--target", "sa8255,cpu")
        assert "--backend htp: does not know cpu; expected of ort, torch, litert" in found.one_line()

    def test_without_a_file_are_for_profile_alone(self, run, keywords) -> None:
        found = run("report", keywords, "--target", "cpu")
        assert (
            "cpu: has no target file: only `opscope profile` can tell (--backend ort or torch or litert);"
            in found.one_line()
        )
        near = run("report", keywords, "--target", "ethos-u55-25").one_line()
        assert "no such target; did you mean ethos-u55-256? expected" in near
        assert "vela: is a backend; expected --backend vela, or" in run("targets", "show", "vela").one_line()

    def test_are_shown_as_json(self, run) -> None:
        document = json.loads(run("targets", "show", "aic100-std", "--json").out)
        assert document["clocks"]["core_hz"]["source"] == "observed"
        assert document["memories"][0]["scope"] == "device"

    def test_need_a_name_to_be_shown(self, run) -> None:
        assert "targets show: no name given; expected one of" in run("targets", "show").one_line()
        assert "no such target" in run("targets", "show", "zzz").one_line()


class TestZoo:
    def test_makes_a_model_that_can_be_reported(self, run, tmp_path) -> None:
        path = tmp_path / "kws.tflite"
        found = run("zoo", "kws-cnn", "--precision", "int8", "-o", path)
        assert (found.code, found.out, found.err) == (0, "", f"wrote {path}\n")
        assert run("report", path, "--target", "max78002-cm4").code == 0

    def test_lists_its_networks(self, run) -> None:
        assert "cifar-resnet" in run("zoo").out
        assert "cifar-resnet" in {row["name"] for row in json.loads(run("zoo", "--json").out)}

    def test_says_what_is_missing_or_unknown(self, run, tmp_path) -> None:
        assert "zoo kws-cnn: no output file; expected -o FILE" in run("zoo", "kws-cnn").one_line()
        assert "no network is called 'nope'" in run("zoo", "nope", "-o", tmp_path / "x.onnx").one_line()
        assert "cannot be written" in run("zoo", "kws-cnn", "-o", tmp_path / "no" / "x.onnx").one_line()


class TestProcess:
    """What only shows from outside: exit status, pipes, encodings."""

    def test_exit_codes_reach_the_shell(self, resnet) -> None:
        words = ("report", resnet, "--target", "cfs-sample", "--no-advice")
        assert spawn(*words).code == 0
        assert spawn(*words, "--budget", "ram=1KB").code == 1
        assert spawn("report", resnet, "--target", "nothing").one_line()

    def test_the_installed_command_is_the_same(self, resnet) -> None:
        command = Path(sys.executable).with_name("opscope")
        if not command.exists():
            pytest.skip(f"the package is not installed: no {command}")
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == spawn("--version").out

    def test_a_reader_that_leaves_early_is_no_error(self, resnet) -> None:
        for extra in ([], ["--format", "json"]):
            words = [*OPSCOPE, "report", str(resnet), "--target", "cfs-sample", "--all", *extra]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.close()
                assert process.stderr.read() == b""
                assert process.wait(timeout=60) == 0

    def test_a_reader_that_leaves_early_does_not_let_a_gate_pass(self, resnet) -> None:
        words = [*OPSCOPE, "report", str(resnet), "--target", "cfs-sample", "--all", "--budget", "ram=1KB"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.stderr.read().startswith(b"FAIL  budget ram")
            assert process.wait(timeout=60) == 1

    @pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
    def test_a_full_disk_behind_stdout_is_one_line(self, resnet) -> None:
        with Path("/dev/full").open("w") as full:
            words = [*OPSCOPE, "report", str(resnet), "--target", "cfs-sample"]
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
        wanted = "opscope: output: cannot be used (No space left on device); expected a place to read and write\n"
        assert (done.returncode, done.stderr) == (2, wanted)

    def test_a_run_whose_name_is_no_text_is_refused_in_one_line(self, keywords, tmp_path) -> None:
        words = [
            *OPSCOPE,
            "profile",
            str(keywords),
            "--target",
            "aic100-std",
            "-o",
            os.fsencode(tmp_path) + b"/\xff.run",
        ]
        done = subprocess.run(words, capture_output=True, check=False)
        assert done.returncode == 2
        assert done.stderr.endswith(b": is not UTF-8; expected names in UTF-8\n")
        assert done.stderr.count(b"\n") == 1
        assert list(tmp_path.iterdir()) == []

    def test_classes_of_a_run_are_looked_into_before_threads_read(self) -> None:
        """msgspec does so at first use, and crashes where two threads meet in it."""
        code = "from opscope.workflows import comparing, viewing; from opscope.recording.run import RunInfo; "
        code += "from opscope.recording.summary import Latency, Summary; "
        code += "print([hasattr(kind, '__msgspec_cache__') for kind in (RunInfo, Summary, Latency)])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "[True, True, True]\n"

    def test_a_terminal_without_dashes_gets_escapes(self, resnet) -> None:
        words = ("report", resnet, "--target", "cfs-sample", "--no-advice")
        found = spawn(*words, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert (found.code, found.err) == (0, "")
        assert "\\u2014" in found.out

    def test_a_file_name_that_is_no_text_is_reported_like_any_other(self, resnet, tmp_path) -> None:
        path = os.fsencode(tmp_path) + b"/net\xff.tflite"
        Path(os.fsdecode(path)).write_bytes(resnet.read_bytes())
        for form in ("text", "json", "md", "html"):
            for extra in ([], ["-o", str(tmp_path / f"out.{form}")]):
                words = [*OPSCOPE, "report", path, "--target", "cfs-sample", "--no-advice", "--format", form, *extra]
                done = subprocess.run(words, capture_output=True, check=False)
                assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (form, extra, done.stderr)

    def test_help_is_quick_because_heavy_imports_wait(self) -> None:
        code = "import sys; from opscope.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        code += "print({'numpy', 'onnx', 'jinja2', 'msgspec'} & set(sys.modules), file=sys.stderr)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == "set()\n"

"""Cloud AI command lines: every flag finds its native parameter, or says why it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.graph.graph import DType
from opscope.machine import catalogue as targets
from opscope.plugins.qaic.flags import COMPILE, RUNNER, CompileCall, RunnerCall, compile_call, runner_call

MODEL, PROGRAM = ("-model=m.onnx", "-aic-binary-dir=./binaries"), ("--test-data=./binaries",)


def compiled(*words: str) -> CompileCall:
    call = compile_call([*MODEL, *words])
    assert call is not None
    return call


def ran(*words: str) -> RunnerCall:
    call = runner_call([*PROGRAM, *words])
    assert call is not None
    return call


def test_the_least_compile_line_has_the_vendors_defaults() -> None:
    call = compiled()
    assert (call.model, call.output, call.target) == (Path("m.onnx"), Path("binaries"), "aic100-std")
    assert (call.options.cores, call.options.batch, call.options.stats_level, call.notes) == (None, None, 40, ())


def test_compile_flags_reach_their_parameters() -> None:
    call = compiled(
        "-stats-level=70",
        "-ddr-stats",
        "-aic-pmu-events=3F,70,200",
        "-stats-batchsize=8",
        "-aic-perf-warnings",
        "-aic-perf-metrics",
        "-aic-num-cores=2",
        "-batchsize=8",
        "-convert-to-fp16",
        "-aic-hw",
        "-target=aic100-pro",
    )
    assert (
        call.options.stats_level,
        call.options.ddr_stats,
        call.options.pmu_events,
        call.options.stats_batchsize,
    ) == (70, True, "3F,70,200", 8)
    assert (call.perf_warnings, call.perf_metrics, call.options.cores, call.options.batch) == (True, True, 2, 8)
    assert (call.options.precision, call.target, call.notes) == ("f16", "aic100-pro", ())
    assert compiled("-aic-pmu-recipe=KernelUtil").options.pmu_recipe == "KernelUtil"


def test_flags_that_notes_on_a_run_advise_are_taken_as_they_stand_there() -> None:
    found = compiled("--stats-level", "70", "--ddr-stats", "--pmu-recipe", "KernelUtil").options
    assert (found.stats_level, found.ddr_stats, found.pmu_recipe) == (70, True, "KernelUtil")
    assert compiled("--pmu-events", "3F,70").options.pmu_events == "3F,70"


def test_values_may_stand_behind_a_blank_and_dashes_may_be_doubled() -> None:
    assert compiled("-stats-level", "70", "--aic-num-cores", "4").options.stats_level == 70
    assert ran("--aic-profiling-start-iter", "3", "-num-iter=7").options.start_iter == 3


def test_switches_take_true_and_false() -> None:
    assert not compiled("-ddr-stats=false").options.ddr_stats
    assert compiled("-ddr-stats=TRUE").options.ddr_stats
    with pytest.raises(UsageError, match=r"^qaic-compile: -ddr-stats=maybe: takes no value; expected it alone"):
        compiled("-ddr-stats=maybe")


def test_splits_of_channels_and_of_ops_that_overlap_reach_the_compiler() -> None:
    call = compiled("-mos=2", "-ols=1")
    assert (call.options.channel_parts, call.options.overlap_parts, call.notes) == (2, 1, ())
    assert (compiled().options.channel_parts, compiled().options.overlap_parts) == (None, 4)


@pytest.mark.parametrize("word", ["-multicast-weights", "-aic-hw-version=2.0", "-time-passes"])
def test_a_flag_without_a_counterpart_is_accepted_and_noted(word: str) -> None:
    assert [note.partition(": accepted;")[0] for note in compiled(word).notes] == [word]


def test_formats_of_weights_and_caches_reach_their_parameters() -> None:
    assert compiled("-mxfp6-matmul", "-convert-to-fp16").options.precision == "mxfp6"
    assert compiled("-mxint8-kv-cache").options.kv_cache == "mxint8"
    assert compiled("-retained-state").options.retained_state
    plain = compiled().options
    assert (plain.precision, plain.kv_cache, plain.retained_state) == (None, "as-is", False)


def test_products_in_mxfp6_run_in_f16_and_so_does_everything_else() -> None:
    assert compiled("-mxfp6-matmul", "-convert-to-fp16").notes == ()
    assert compiled("-mxfp6-matmul").notes == (
        "-mxfp6-matmul: products run in f16, and so does all f32, as with -convert-to-fp16",
    )


def test_quantisation_of_the_vendor_is_i8(tmp_path: Path) -> None:
    assert compiled("-convert-to-quantize").options.precision == "i8"
    ranges = tmp_path / "ranges.yaml"
    ranges.touch()
    call = compiled(f"-load-profile={ranges}", "-convert-to-fp16")
    assert call.options.precision == "i8"
    assert call.notes == (
        f"-load-profile={ranges}: the model runs in i8, as a quantiser leaves it; no value is looked at",
    )
    for missing in ("", tmp_path / "none.yaml"):
        with pytest.raises(UsageError, match=r"^-load-profile=.*: no such file; expected a profile of ranges$"):
            compiled(f"-load-profile={missing}")
    with pytest.raises(
        UsageError, match=r"^-mxfp6-matmul: weights that are quantised have 8 bits; expected it without"
    ):
        compiled("-convert-to-quantize", "-mxfp6-matmul")


def test_without_convert_to_fp16_floats_keep_their_type() -> None:
    assert compiled().keeps_floats
    assert not compiled("-convert-to-fp16").keeps_floats


def test_profiling_of_old_compiles_operator_statistics_in() -> None:
    call = compiled("-aic-profiling-type=stats", "-aic-profiling-type=trace")
    assert (call.options.stats_level, call.notes) == (70, ("-aic-profiling-type: stats level 70 is compiled in",))
    told = compiled("-aic-profiling-type=stats", "-stats-level=50")
    assert (told.options.stats_level, told.notes) == (50, ())


def test_the_compiler_under_its_older_name_records_nothing_unless_asked() -> None:
    def level(*words: str) -> int:
        call = compile_call([*MODEL, *words], tool="qaic-exec")
        assert call is not None
        return call.options.stats_level

    assert (level(), level("-aic-profiling-type=stats"), level("-stats-level=50")) == (0, 70, 50)
    with pytest.raises(UsageError, match=r"^qaic-exec: -aic-hww: no such flag; expected -aic-hw"):
        level("-aic-hww")
    with pytest.raises(UsageError, match=r"^qaic-exec: no -model; expected -model=MODEL$"):
        compile_call([], tool="qaic-exec")


def test_symbols_set_the_dimensions_that_the_model_names() -> None:
    call = compiled("-onnx-define-symbol=batch_size,8", "-onnx-define-symbol=seq_len,128", "-shape=x=1x3x48x320")
    assert call.options.shapes == {"batch_size": (8,), "seq_len": (128,), "x": (1, 3, 48, 320)}
    assert (call.options.batch, call.notes) == (None, ())
    assert compiled("--shape", "x=1x3").options.shapes == {"x": (1, 3)}  # as the reader's errors spell it
    assert compiled().options.shapes is None


@pytest.mark.parametrize("text", ["height", "height,", ",8", "height,-1", "height,1x2", "height,²"])
def test_a_symbol_has_a_name_and_a_size(text: str) -> None:
    with pytest.raises(UsageError, match=rf"^-onnx-define-symbol={text}: expected NAME,SIZE such as batch_size,8$"):
        compiled(f"-onnx-define-symbol={text}")


def test_a_shape_of_another_form_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"^-shape: 'x' is not of the form NAME=1x3x224x224$"):
        compiled("-shape=x")


def test_the_least_runner_line_has_the_vendors_defaults() -> None:
    call = ran()
    assert (
        call.folders,
        call.options.num_iter,
        call.options.activations,
        call.options.set_size,
        call.options.threads,
    ) == (
        (Path("binaries"),),
        None,
        1,
        10,
        4,
    )
    assert (call.options.profile, call.options.out_dir, call.options.num_samples, call.options.start_iter) == (
        (),
        Path(),
        1,
        0,
    )


def test_runner_flags_reach_their_parameters() -> None:
    call = ran(
        "-n",
        "100",
        "--time",
        "20",
        "-a",
        "7",
        "-S1",
        "-T=2",
        "-d",
        "0",
        "--aic-profiling-type=stats",
        "--aic-profiling-type",
        "trace",
        "--aic-profiling-out-dir=./stats",
        "--aic-profiling-num-samples=5",
        "--aic-profiling-start-iter=1",
        "--aic-profiling-start-delay=1000",
        "--seed=9",
    )
    assert (
        call.options.num_iter,
        call.options.time,
        call.options.activations,
        call.options.set_size,
        call.options.threads,
    ) == (100, 20.0, 7, 1, 2)
    assert (call.options.profile, call.options.out_dir, call.options.num_samples) == (
        ("stats", "trace"),
        Path("stats"),
        5,
    )
    assert (call.options.start_iter, call.options.start_delay, call.options.seed) == (1, 1000.0, 9)
    assert call.notes == ("-d: accepted; the device is simulated",)


def test_streams_and_formats_of_old_are_files_of_ours() -> None:
    call = ran("--aic-profiling-type=latency_stream", "-aic-profiling-format=json", "-aic-profiling-format=ascii")
    assert call.options.profile == ("latency", "trace", "stats")


def test_outputs_go_to_their_own_folder() -> None:
    assert (ran().outputs, ran().options.save_outputs) == (None, False)
    call = ran("--write-output-dir=out", "--aic-profiling-out-dir=stats", "--write-output-start-iter=5")
    assert (call.options.save_outputs, call.outputs, call.first_output) == (True, Path("out"), 5)
    assert (call.options.out_dir, call.notes) == (Path("stats"), ())
    assert ran("--write-output-num-samples=2").outputs == Path()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-stats-levl=70",), r"^qaic-compile: -stats-levl: no such flag; expected -stats-level"),
        (("-aic-pmu-event=3F",), r"^qaic-compile: -aic-pmu-event: no such flag; expected -aic-pmu-events"),
        (
            ("--zzzzzz",),
            r"^qaic-compile: --zzzzzz: no such flag; expected one that `opscope qaic-compile --help` lists",
        ),
        (("stray",), r"^qaic-compile: 'stray' is not a flag; expected flags such as -model"),
        (("-stats-level",), r"^qaic-compile: -stats-level: no value; expected -stats-level=VALUE"),
        (("-stats-level=high",), r"^-stats-level=high: expected a whole number of at least 0"),
        (("-aic-profiling-type=all",), r"^-aic-profiling-type=all: not known; expected one of stats, trace, latency"),
        (("-aic-num-cores=0",), r"^-aic-num-cores=0: expected a whole number of at least 1"),
        (("-onnx-define-symbol=b,1", "-onnx-define-symbol=b,2"), r"^-onnx-define-symbol=b,2: b was 1 before; expected"),
    ],
)
def test_a_compile_line_that_is_wrong_says_what_would_be_right(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compiled(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--aic-profiling-typ=stats",),
            r"^qaic-runner: --aic-profiling-typ: no such flag; expected --aic-profiling-type",
        ),
        (
            ("--aic-profiling-type=statz",),
            r"^--aic-profiling-type=statz: not known; expected one of stats, trace, latency",
        ),
        (("-n", "many"), r"^-n=many: expected a whole number of at least 1"),
        (("--time=soon",), r"^--time=soon: expected a number"),
        (("--time=nan",), r"^--time=nan: expected a positive number of seconds"),
        (("-a", "5000"), r"^-a=5000: out of range; expected 1 to 4096"),
    ],
)
def test_a_runner_line_that_is_wrong_says_what_would_be_right(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ran(*words)


def test_what_a_line_needs_is_named() -> None:
    with pytest.raises(UsageError, match=r"^qaic-compile: no -model; expected -model=MODEL"):
        compile_call(["-aic-binary-dir=x"])
    with pytest.raises(UsageError, match=r"^qaic-compile: no -aic-binary-dir; expected -aic-binary-dir=DIR"):
        compile_call(["-model=x"])
    with pytest.raises(UsageError, match=r"^qaic-runner: no --test-data; expected --test-data=DIR"):
        runner_call([])


def test_help_is_asked_for_in_the_usual_ways() -> None:
    assert [compile_call([word]) for word in ("-h", "--help", "-help")] == [None] * 3
    assert runner_call(["-h"]) is None


@pytest.mark.parametrize("table", [COMPILE, RUNNER])
def test_no_flag_stands_in_a_table_twice(table: tuple[object, ...]) -> None:
    names = [name for flag in table for name in flag.names]  # type: ignore[attr-defined]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["aic100-std", "aic100-pro", "aic100-ultra"])
def test_vectors_multiply_half_as_many_floats_of_32_bits_as_of_16(name: str) -> None:
    vectors = next(engine for engine in targets.load(name).engines if engine.name == "HVX")
    for table in (vectors.macs_per_cycle, vectors.element_ops_per_cycle):
        single, half = (vectors.rate(table, dtype) for dtype in (DType.F32, DType.F16))
        assert single is not None
        assert half is not None
        assert single.value == pytest.approx(half.value / 2, rel=0.01)

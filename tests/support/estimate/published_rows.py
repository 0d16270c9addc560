"""Results on hardware that others have published, each with what it takes to simulate the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from opscope.zoo import Recipe


class Figure(Enum):
    """What a published figure is, and so what of ours is held against it."""

    DEVICE = "device time"  # of one inference on the device, mean
    LATENCY = "whole system, 90th percentile"  # one inference at a time: the card, with the link that it hangs on
    THROUGHPUT = "whole card"  # per second, of all instances at once, with the host
    TOKENS = "decode"  # tokens per second of one stream: the device alone, as its cache stays there
    BOARD = "whole inference, median"  # of a micro-controller: estimated, without a range

    @property
    def is_rate(self) -> bool:
        return self in (Figure.THROUGHPUT, Figure.TOKENS)


@dataclass(frozen=True, slots=True)
class Published:
    """One network on one piece of hardware, as others measured it."""

    network: str
    hardware: str
    recipe: Recipe
    target: str
    figure: Figure
    values: tuple[float, ...]  # of every system, least first: milliseconds, or per second
    note: str = ""  # what else a reader has to know of the published figure
    cores: int | None = None
    instances: int = 1  # programs at once on a device
    devices: int = 1  # of a card, each with as many instances: the published figure is of them all
    batch: int | None = None
    per_sample: float = 1.0  # inputs of ours in one of theirs
    precision: str | None = None  # that the model is compiled in; None: its own
    set_size: int = 10  # inferences of an instance on their way at once
    sets: str = ""  # which figures of the target come from it; empty: it judges

    @property
    def options(self) -> dict[str, int]:
        return {} if self.cores is None else {"cores": self.cores}


BERT_LARGE = {"layers": 24, "hidden": 1024, "heads": 16, "intermediate": 4096, "inputs": "packed"}
BERT = Recipe("bert-base", precision="f16", sequence=128, weights=False)
LARGE = Recipe("bert-base", precision="int8", sequence=384, weights=False, options=BERT_LARGE)
RESNET = Recipe("resnet50", precision="int8", weights=False)
RETINANET = Recipe("retinanet", precision="int8", weights=False)
STANDARD, PRO, ULTRA = "AIC 100 Standard", "AIC 100 Pro", "AIC 100 Ultra"

# SQuAD v1.1 fills 46 % of its inputs of 384 tokens; the rest is padding (openreview.net, 3nzKUh9a4M). Submissions on
# this hardware put up to three samples into one input (krai/ck-qaic, program/packed-bert-qaic-loadgen, pack.cpp), so
# that a sample takes 0.46 of an input, or more where they do not fit together.
PACKED = 0.46
PACKED_NOTE = "samples, 2.2 to an input"


Row = tuple[str, Published]


def _tutorial() -> Iterator[Row]:
    """quic/cloud-ai-sdk, Profiler tutorial: mean of ExecTimeUs. Most figures of the targets are from this run."""
    yield (
        "bert-base",
        Published(
            "BERT-base f16, batch 8, 128 tokens",
            f"{STANDARD}, 2 cores",
            BERT,
            "aic100-std",
            Figure.DEVICE,
            (22.861,),
            cores=2,
            batch=8,
            sets="most rates",
        ),
    )


# quic/cloud-ai-sdk, Performance-Tuning tutorials, model configurator: cores, batch, instances, inferences per second of
# all instances. Those of BERT-base are of September 2023 and of July 2023, which the notebook has both.
BERT_CONFIGURATIONS = (
    (1, 4, 14, (2367.03, 2414.26)),
    (2, 8, 7, (2504.47, 2538.75)),
    (4, 16, 3, (2134.11,)),
    (4, 16, 4, (2504.70,)),
    (6, 16, 2, (1591.20,)),
    (8, 16, 2, (2236.90,)),
    (12, 16, 1, (1176.24, 1290.96)),
)
# Of August 2023, SDK 1.10, on a card of 14 cores (commit 8b15598).
RESNET_CONFIGURATIONS = (
    (1, 2, 14, (4419.97,)),
    (2, 4, 7, (6418.51,)),
    (5, 8, 2, (5473.46,)),
    (7, 16, 2, (6091.01,)),
    (8, 16, 1, (5616.04,)),
)
# Of April 2025, SDK 1.19 (commit 45892a0). The card is not named: its host has four devices, of 16 cores, and one of
# them runs the same program at 0.69 of the rate of the card of 2023. That is a device of an Ultra card.
ULTRA_CONFIGURATIONS = (
    (1, 4, 14, (3722.94,)),
    (2, 4, 8, (4912.90,)),
    (4, 8, 4, (5248.24,)),
    (8, 16, 2, (5258.90,)),
    (13, 16, 1, (2677.83,)),
)
# Of August 2023, SDK 1.9, quantised by the vendor's compiler, on a card of 14 cores (commit 06087e0).
INTEGER_CONFIGURATIONS = (
    (1, 4, 14, (14230.17,)),
    (2, 4, 7, (15940.04,)),
    (4, 8, 3, (15200.33,)),
    (7, 1, 2, (6753.81,)),
    (12, 16, 1, (11880.64,)),
)


def _configurator() -> Iterator[Row]:
    """Where cores of BERT-base add up to 16, the card is one of 16 cores."""
    f16 = replace(RESNET, precision="f16")
    ultra = f"{ULTRA}, one device"
    for key, network, suffix, recipe, table, device in (
        ("bert-base", "BERT-base f16", ", 128 tokens", BERT, BERT_CONFIGURATIONS, ""),
        ("resnet50", "ResNet-50 f16", "", f16, RESNET_CONFIGURATIONS, ""),
        ("resnet50-ultra", "ResNet-50 f16", "", f16, ULTRA_CONFIGURATIONS, ultra),
        ("resnet50-int8", "ResNet-50 int8 (tutorial)", "", RESNET, INTEGER_CONFIGURATIONS, ""),
    ):
        for cores, batch, instances, rates in table:
            card, target = (PRO, "aic100-pro") if cores * instances > 14 else (STANDARD, "aic100-std")
            yield (
                f"{key}-{cores}x{instances}",
                Published(
                    f"{network}, batch {batch}{suffix}",
                    f"{device or card}, {instances} × {_of(cores)}",
                    recipe,
                    "aic100-ultra" if device else target,
                    Figure.THROUGHPUT,
                    rates,
                    cores=cores,
                    batch=batch,
                    instances=instances,
                ),
            )


def _one_at_a_time() -> Iterator[Row]:
    """The same tutorials, least latency: one inference after the other, in microseconds as the runner sees it."""
    f16 = replace(RESNET, precision="f16")
    for network, recipe, target, hardware, cores, instances, microseconds, sets in (
        ("BERT-base f16, batch 1, 128 tokens", BERT, "aic100-pro", PRO, 1, 1, 6510.59, "the rates of one core"),
        ("BERT-base f16, batch 1, 128 tokens", BERT, "aic100-pro", PRO, 3, 1, 4583.56, ""),
        ("BERT-base f16, batch 1, 128 tokens", BERT, "aic100-pro", PRO, 7, 1, 2304.41, ""),
        ("BERT-base f16, batch 1, 128 tokens", BERT, "aic100-pro", PRO, 14, 1, 2112.63, ""),
        ("ResNet-50 f16, batch 1", f16, "aic100-std", STANDARD, 7, 1, 827.65, ""),
        ("ResNet-50 f16, batch 1", f16, "aic100-std", STANDARD, 11, 1, 780.10, ""),
        ("ResNet-50 f16, batch 1", f16, "aic100-ultra", f"{ULTRA}, one device", 7, 1, 1472.05, ""),
        ("ResNet-50 int8, batch 1", RESNET, "aic100-std", STANDARD, 7, 2, 428.16, "the latency of the link"),
    ):
        yield (
            f"{recipe.name}-{recipe.precision}-{target}-{cores}-alone",
            Published(
                network,
                f"{hardware}, {instances} × {_of(cores)}, one at a time",
                recipe,
                target,
                Figure.THROUGHPUT,
                (instances * 1e6 / microseconds,),
                cores=cores,
                instances=instances,
                set_size=1,
                sets=sets,
            ),
        )


def _of(cores: int) -> str:
    return f"{cores} core{'s' * (cores > 1)}"


MIXED = "elementwise ops, softmax and norms in f16"
FOUND = "scores and the best 1,000 of every level on the card, in f16; their boxes are compared on the host"


def _single_stream() -> Iterator[Row]:
    """MLPerf Inference v3.0 and v4.0, closed, SingleStream: Qualcomm, HPE, Dell, Lenovo, Krai.

    From mlcommons/inference_results_v3.0 and _v4.0, without r282_z93_q5e, whose clock is lowered. Programs have 8
    cores: krai/ck-qaic, package/model-qaic-compile, *.singlestream.
    """
    for key, card, target, resnet, bert, retinanet in (
        ("std", STANDARD, "aic100-std", (0.3358, 0.4113), (7.518, 7.545, 7.547), (13.174, 13.212)),
        (
            "pro",
            PRO,
            "aic100-pro",
            (0.4068, 0.4085, 0.4086, 0.4096),
            (6.809, 7.618, 7.821, 7.916),
            (9.534, 14.194, 14.342, 15.698),
        ),
        ("ultra", f"{ULTRA}, one device", "aic100-ultra", (0.5808, 0.5940), (8.695, 8.696), (11.470,)),
    ):
        hardware, latency = f"{card}, 8 cores", Figure.LATENCY
        yield (
            f"resnet50-{key}",
            Published("ResNet-50 int8, batch 1", hardware, RESNET, target, latency, resnet, cores=8),
        )
        large = "BERT-large int8, batch 1, 384 tokens"
        yield f"bert-large-{key}", Published(large, hardware, LARGE, target, latency, bert, MIXED, cores=8)
        detector = "RetinaNet int8, batch 1, 800 × 800"
        yield f"retinanet-{key}", Published(detector, hardware, RETINANET, target, latency, retinanet, FOUND, cores=8)


@dataclass(frozen=True, slots=True)
class _Offline:
    """One benchmark of MLPerf, by card: instances on a device, and samples per second of a card."""

    key: str
    network: str
    recipe: Recipe
    cores: int
    standard: tuple[int, tuple[float, ...]]
    pro: tuple[int, tuple[float, ...]]
    ultra: tuple[int, tuple[float, ...]]
    note: str = ""
    batch: int | None = None
    per_sample: float = 1.0


OFFLINE = (
    _Offline(
        "resnet50",
        "ResNet-50 int8, batch 8",
        RESNET,
        4,
        (3, (19141.6, 19803.3, 19865.4, 19897.3)),
        (4, (23550.3, 23551.9, 23780.5, 23913.4, 23938.1, 24425.4, 24854.0, 24892.9)),
        (4, (48898.2, 53754.0, 54523.8, 56405.1, 61283.0)),
        batch=8,
    ),
    _Offline(
        "bert-large",
        "BERT-large int8, SQuAD packed into 384 tokens",
        LARGE,
        1,
        (14, (687.7, 735.0, 740.6, 750.2)),
        (16, (662.6, 670.9, 764.9, 765.0, 775.9, 782.9, 783.6, 787.7, 789.1, 807.1, 807.7, 812.6)),
        (16, (1641.5, 1815.6, 1821.6, 1935.4, 2073.7)),
        f"{PACKED_NOTE}; {MIXED}",
        per_sample=PACKED,
    ),
    _Offline(
        "bert-large-f16",
        "BERT-large f16, SQuAD packed into 384 tokens",
        replace(LARGE, precision="f16"),
        4,
        (3, (339.0,)),
        (4, (371.8, 389.7, 399.1, 399.7)),
        (4, (1029.3, 1035.2, 1036.9)),
        PACKED_NOTE,
        per_sample=PACKED,
    ),
    _Offline(
        "retinanet",
        "RetinaNet int8, batch 1, 800 × 800",
        RETINANET,
        1,
        (14, (257.4, 275.8, 275.9, 311.7)),
        (16, (261.6, 261.8, 261.8, 261.9, 281.8, 281.9, 282.1, 314.5)),
        (16, (872.3, 884.0, 967.3, 1039.5)),
        FOUND,
        batch=1,
    ),
)


def _offline() -> Iterator[Row]:
    """MLPerf Inference v3.0 and v4.0, closed, Offline, per card; and two of BERT v1.1 (670.9; 10,601.9 of 16 cards).

    Without systems whose clock is lowered (…e, …ee). Cores, batch and instances: krai/ck-qaic, *.offline.
    """
    for entry in OFFLINE:
        for key, card, target, devices, (instances, values) in (
            ("std", STANDARD, "aic100-std", 1, entry.standard),
            ("pro", PRO, "aic100-pro", 1, entry.pro),
            ("ultra", ULTRA, "aic100-ultra", 4, entry.ultra),
        ):
            yield (
                f"{entry.key}-offline-{key}",
                Published(
                    entry.network,
                    f"{card}, {f'{devices} × ' if devices > 1 else ''}{instances} × {_of(entry.cores)}",
                    entry.recipe,
                    target,
                    Figure.THROUGHPUT,
                    values,
                    entry.note,
                    entry.cores,
                    instances,
                    devices,
                    entry.batch,
                    entry.per_sample,
                ),
            )


def _decoders() -> Iterator[Row]:
    """quic/cloud-ai-sdk-pages, blog on Microscaling formats; last the LLM profile of quic/cloud-ai-sdk.

    The zoo's decoder has a gate in its feed-forward part, GPT-J and OPT have none: three matrices of two thirds of the
    features have as many weights as their two. Half of the 1,024 generated tokens are cached, behind a prompt of 1,024.
    """
    hardware = f"{STANDARD}, 14 cores"
    gpt_j = _decoder(kv_length=1536, layers=28, hidden=4096, heads=16, intermediate=10912, vocabulary=50400)
    opt = _decoder(kv_length=1536, layers=32, hidden=2560, heads=32, intermediate=6816, vocabulary=50272)
    for key, network, recipe, precision, rate in (
        ("gpt-j-f16", "GPT-J-6B f16", gpt_j, None, 8.08),
        ("gpt-j-mxfp6", "GPT-J-6B, weights in MXFP6", gpt_j, "mxfp6", 13.9),
        ("opt-f16", "OPT-2.7B f16", opt, None, 15.44),
        ("opt-mxfp6", "OPT-2.7B, weights in MXFP6", opt, "mxfp6", 27.72),
    ):
        words = f"{network}, decode, 1,536 tokens cached"
        row = Published(words, hardware, recipe, "aic100-std", Figure.TOKENS, (rate,), precision=precision)
        yield key, row
    amber = "AmberChat-7B, weights in MXFP6, decode, 1,024 tokens cached"
    half = "up to 2,048 tokens of context: half of it is assumed"
    yield (
        "amber-mxfp6",
        Published(amber, hardware, _decoder(), "aic100-std", Figure.TOKENS, (14.9,), half, precision="mxfp6"),
    )
    yield (
        "amber",
        Published(
            "Amber-7B f16, decode, 127 tokens cached",
            hardware,
            _decoder(kv_length=127),
            "aic100-std",
            Figure.DEVICE,
            (125.106,),
            sets="what is reached of the memory's peak",
        ),
    )


def _decoder(**shape: int) -> Recipe:
    return Recipe("llm-decoder", precision="f16", weights=False, options=shape)


KWS = "43.19 43.42 47.78 62.68 62.87 71.66 72.68 74.73 75.06 82.00 93.64 97.65 99.81 99.84 144.03 144.03"
IC = (
    "165.13 165.67 167.76 173.16 179.02 180.54 214.00 221.98 226.91 226.91 252.78 296.56 298.69 389.11 389.11 389.56 "
    "389.56"
)


def _boards() -> Iterator[Row]:
    """MLPerf Tiny v0.7 to v1.3, closed, performance, NUCLEO-L4R5ZI (mlcommons/tiny_results_v0.7 … v1.3).

    STMicroelectronics, Plumerai, Krai, cTuning, Skymizer and others; without the result of Bosch that the target was
    fitted to.
    """
    for key, network, name, text in (
        ("kws", "DS-CNN int8 (keyword spotting)", "kws-cnn", KWS),
        ("ic", "ResNet-8 int8 (CIFAR-10)", "cifar-resnet", IC),
    ):
        recipe = Recipe(name, format="tflite", precision="int8")
        values = tuple(map(float, text.split()))
        yield (
            key,
            Published(network, "Cortex-M4, 120 MHz, other compilers", recipe, "cortex-m4", Figure.BOARD, values),
        )


ROWS: Mapping[str, Published] = {
    key: row
    for part in (_tutorial, _configurator, _one_at_a_time, _single_stream, _offline, _decoders, _boards)
    for key, row in part()
}

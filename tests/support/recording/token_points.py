"""Language models in the form that runs have them, made by hand."""

from __future__ import annotations

from dataclasses import replace

from opscope.core.provenance import Provenance
from opscope.recording.language_model import LanguageModel, LargestFit, Ranged, TokenPoint

CONFIG = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
POINT = TokenPoint(
    batch=2,
    prompt=128,
    context=1024,
    ttft_ms=Ranged(40.0, 30.0, 60.0),
    tpot_ms=Ranged(20.0, 16.0, 25.0),
    prefill_tokens_per_s=Ranged(6400.0, 4266.0, 8533.0),
    decode_tokens_per_s=Ranged(100.0, 80.0, 125.0),
    weight_bytes=6 << 30,
    kv_bytes=1 << 30,
    capacity_bytes=16 << 30,
    fits=True,
    bound_prefill="compute",
    bound_decode="memory",
    energy_per_token_mj=Ranged(500.0, 400.0, 700.0),
    provenance=Provenance.ESTIMATED,
    shares_decode={"attention": 0.25, "feed-forward": 0.75},
)
OUTSIDE = replace(POINT, batch=32, kv_bytes=16 << 30, fits=False)
MODEL = LanguageModel(
    model="net",
    target="chip",
    devices=4,
    cards=2,
    weights="mxfp6",
    kv="mxint8",
    parallel="tensor",
    points=(POINT, OUTSIDE),
    largest=(LargestFit(2, 4096),),
    notes=("the host is not in these times",),
)

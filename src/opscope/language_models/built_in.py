"""Models by name: the fields of their configs that a description needs.

A row is `name | repository at Hugging Face | parameters in billions | family | sizes | other fields`; a line that
begins with spaces goes on with the row before. Of a model with several kinds of input it is the decoder, whose number
of parameters is that of the whole less its encoders. Files of Falcon hold the tied head a second time, and its number
counts it. Fields were typed in; where each row was found again in public files is said below the table (`_FOUND`), and
networks that transformers builds of them have the same number of parameters (`test_llm_parameters_real.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Fields whose values stand in a row without their names: those of Llama's config, and of families with other ones.
_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
_OPT = (*_SIZES[:3], "ffn_dim", *_SIZES[5:], "word_embed_proj_dim")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}

_TABLE = """
llama-2-7b | meta-llama/Llama-2-7b-hf | 6.738 | llama | 4096 32 32 32 11008 32000 4096
llama-2-13b | meta-llama/Llama-2-13b-hf | 13.016 | llama | 5120 40 40 40 13824 32000 4096
llama-2-70b | meta-llama/Llama-2-70b-hf | 68.977 | llama | 8192 80 64 8 28672 32000 4096
codellama-34b | codellama/CodeLlama-34b-hf | 33.744 | llama | 8192 48 64 8 22016 32000 16384
llama-3-8b | meta-llama/Meta-Llama-3-8B | 8.03 | llama | 4096 32 32 8 14336 128256 8192
llama-3-70b | meta-llama/Meta-Llama-3-70B | 70.554 | llama | 8192 80 64 8 28672 128256 8192
llama-3.1-8b | meta-llama/Llama-3.1-8B | 8.03 | llama | 4096 32 32 8 14336 128256 131072
llama-3.1-70b | meta-llama/Llama-3.1-70B | 70.554 | llama | 8192 80 64 8 28672 128256 131072
llama-3.1-405b | meta-llama/Llama-3.1-405B | 405.85 | llama | 16384 126 128 8 53248 128256 131072
llama-3.2-1b | meta-llama/Llama-3.2-1B | 1.236 | llama | 2048 16 32 8 8192 128256 131072 | tied head_dim=64
llama-3.2-3b | meta-llama/Llama-3.2-3B | 3.213 | llama | 3072 28 24 8 8192 128256 131072 | tied head_dim=128
llama-3.3-70b | meta-llama/Llama-3.3-70B-Instruct | 70.554 | llama | 8192 80 64 8 28672 128256 131072
amber-7b | LLM360/Amber | 6.738 | llama | 4096 32 32 32 11008 32000 2048
amberchat-7b | LLM360/AmberChat | 6.738 | llama | 4096 32 32 32 11008 32000 2048
tinyllama-1.1b | TinyLlama/TinyLlama-1.1B-Chat-v1.0 | 1.1 | llama | 2048 22 32 4 5632 32000 2048
smollm2-135m | HuggingFaceTB/SmolLM2-135M | 0.1345 | llama | 576 30 9 3 1536 49152 8192 | tied
smollm2-360m | HuggingFaceTB/SmolLM2-360M | 0.3618 | llama | 960 32 15 5 2560 49152 8192 | tied
smollm2-1.7b | HuggingFaceTB/SmolLM2-1.7B | 1.711 | llama | 2048 24 32 32 8192 49152 8192 | tied
smollm3-3b | HuggingFaceTB/SmolLM3-3B | 3.075 | smollm3 | 2048 36 16 4 11008 128256 65536
falcon3-1b | tiiuae/Falcon3-1B-Instruct | 1.669 | llama | 2048 18 8 4 8192 131072 8192 | head_dim=256
falcon3-3b | tiiuae/Falcon3-3B-Instruct | 3.228 | llama | 3072 22 12 4 9216 131072 32768 | head_dim=256
falcon3-7b | tiiuae/Falcon3-7B-Instruct | 7.456 | llama | 3072 28 12 4 23040 131072 32768 | head_dim=256
falcon3-10b | tiiuae/Falcon3-10B-Instruct | 10.306 | llama | 3072 40 12 4 23040 131072 32768 | head_dim=256
granite-3.1-2b | ibm-granite/granite-3.1-2b-instruct | 2.534 | granite | 2048 40 32 8 8192 49155 131072 | tied
granite-3.1-8b | ibm-granite/granite-3.1-8b-instruct | 8.171 | granite | 4096 40 32 8 12800 49155 131072 | tied
internlm2-1.8b | internlm/internlm2-1_8b | 1.889 | internlm2 | 2048 24 16 8 8192 92544 32768
internlm2-7b | internlm/internlm2-7b | 7.738 | internlm2 | 4096 32 32 8 14336 92544 32768
baichuan2-7b | baichuan-inc/Baichuan2-7B-Base | 7.506 | baichuan | 4096 32 32 32 11008 125696 4096
baichuan2-13b | baichuan-inc/Baichuan2-13B-Base | 13.897 | baichuan | 5120 40 40 40 13696 125696 4096
deepseek-moe-16b | deepseek-ai/deepseek-moe-16b-base | 16.376 | deepseek | 2048 28 16 16 10944 102400 4096 |
  n_shared_experts=2 first_k_dense_replace=1 n_routed_experts=64 num_experts_per_tok=6 moe_intermediate_size=1408
minicpm-2b | openbmb/MiniCPM-2B-sft-bf16 | 2.725 | minicpm | 2304 40 36 36 5760 122753 4096
minicpm4-0.5b | openbmb/MiniCPM4-0.5B | 0.434 | minicpm | 1024 24 16 2 4096 73448 32768
minicpm4-8b | openbmb/MiniCPM4-8B | 8.19 | minicpm | 4096 32 32 2 16384 73448 32768 | tie_word_embeddings=false
mistral-7b | mistralai/Mistral-7B-v0.1 | 7.242 | mistral | 4096 32 32 8 14336 32000 32768 | sliding_window=4096
mistral-7b-v0.3 | mistralai/Mistral-7B-Instruct-v0.3 | 7.248 | mistral | 4096 32 32 8 14336 32768 32768 |
  sliding_window=null
mistral-nemo-12b | mistralai/Mistral-Nemo-Base-2407 | 12.248 | mistral | 5120 40 32 8 14336 131072 131072 |
  head_dim=128 sliding_window=null
mistral-small-24b | mistralai/Mistral-Small-24B-Base-2501 | 23.572 | mistral | 5120 40 32 8 32768 131072 32768 |
  head_dim=128 sliding_window=null
mixtral-8x7b | mistralai/Mixtral-8x7B-v0.1 | 46.703 | mixtral | 4096 32 32 8 14336 32000 32768 | num_local_experts=8
  num_experts_per_tok=2
mixtral-8x22b | mistralai/Mixtral-8x22B-v0.1 | 140.62 | mixtral | 6144 56 48 8 16384 32000 65536 | num_local_experts=8
  num_experts_per_tok=2
qwen2-0.5b | Qwen/Qwen2-0.5B | 0.494 | qwen2 | 896 24 14 2 4864 151936 131072 | tied
qwen2-1.5b | Qwen/Qwen2-1.5B | 1.544 | qwen2 | 1536 28 12 2 8960 151936 131072 | tied
qwen2-7b | Qwen/Qwen2-7B | 7.616 | qwen2 | 3584 28 28 4 18944 152064 131072
qwen2-72b | Qwen/Qwen2-72B | 72.706 | qwen2 | 8192 80 64 8 29568 152064 131072
qwen2.5-0.5b | Qwen/Qwen2.5-0.5B | 0.494 | qwen2 | 896 24 14 2 4864 151936 32768 | tied
qwen2.5-1.5b | Qwen/Qwen2.5-1.5B | 1.544 | qwen2 | 1536 28 12 2 8960 151936 131072 | tied
qwen2.5-3b | Qwen/Qwen2.5-3B | 3.086 | qwen2 | 2048 36 16 2 11008 151936 32768 | tied
qwen2.5-7b | Qwen/Qwen2.5-7B | 7.616 | qwen2 | 3584 28 28 4 18944 152064 131072
qwen2.5-14b | Qwen/Qwen2.5-14B | 14.77 | qwen2 | 5120 48 40 8 13824 152064 131072
qwen2.5-32b | Qwen/Qwen2.5-32B | 32.764 | qwen2 | 5120 64 40 8 27648 152064 131072
qwen2.5-72b | Qwen/Qwen2.5-72B | 72.706 | qwen2 | 8192 80 64 8 29568 152064 131072
qwen2.5-coder-1.5b | Qwen/Qwen2.5-Coder-1.5B | 1.544 | qwen2 | 1536 28 12 2 8960 151936 32768 | tied
qwen2-vl-2b | Qwen/Qwen2-VL-2B-Instruct (decoder) | 1.544 | qwen2_vl_text | 1536 28 12 2 8960 151936 32768 | tied
deepseek-r1-distill-qwen-1.5b | deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B | 1.777 | qwen2 | 1536 28 12 2 8960 151936
  131072
deepseek-r1-distill-qwen-7b | deepseek-ai/DeepSeek-R1-Distill-Qwen-7B | 7.616 | qwen2 | 3584 28 28 4 18944 152064
  131072
deepseek-r1-distill-llama-8b | deepseek-ai/DeepSeek-R1-Distill-Llama-8B | 8.03 | llama | 4096 32 32 8 14336 128256
  131072
qwen3-0.6b | Qwen/Qwen3-0.6B | 0.596 | qwen3 | 1024 28 16 8 3072 151936 40960 | tied head_dim=128
qwen3-1.7b | Qwen/Qwen3-1.7B | 1.721 | qwen3 | 2048 28 16 8 6144 151936 40960 | tied head_dim=128
qwen3-4b | Qwen/Qwen3-4B | 4.022 | qwen3 | 2560 36 32 8 9728 151936 40960 | tied head_dim=128
qwen3-8b | Qwen/Qwen3-8B | 8.191 | qwen3 | 4096 36 32 8 12288 151936 40960 | head_dim=128
qwen3-14b | Qwen/Qwen3-14B | 14.768 | qwen3 | 5120 40 40 8 17408 151936 40960 | head_dim=128
qwen3-32b | Qwen/Qwen3-32B | 32.762 | qwen3 | 5120 64 64 8 25600 151936 40960 | head_dim=128
qwen3-vl-2b | Qwen/Qwen3-VL-2B-Instruct (decoder) | 1.721 | qwen3_vl_text | 2048 28 16 8 6144 151936 262144 | tied
  head_dim=128
qwen1.5-moe-a2.7b | Qwen/Qwen1.5-MoE-A2.7B | 14.316 | qwen2_moe | 2048 24 16 16 5632 151936 8192 |
  shared_expert_intermediate_size=5632 num_experts=60 num_experts_per_tok=4 moe_intermediate_size=1408
qwen3-30b-a3b | Qwen/Qwen3-30B-A3B | 30.532 | qwen3_moe | 2048 48 32 4 6144 151936 40960 | head_dim=128
  num_experts=128 num_experts_per_tok=8 moe_intermediate_size=768
qwen3-235b-a22b | Qwen/Qwen3-235B-A22B | 235.09 | qwen3_moe | 4096 94 64 4 12288 151936 40960 | head_dim=128
  num_experts=128 num_experts_per_tok=8 moe_intermediate_size=1536
qwen3.5-0.8b | Qwen/Qwen3.5-0.8B (decoder) | 0.752 | qwen3_5_text | 1024 24 8 2 3584 248320 262144 | tied
  linear_num_value_heads=16 head_dim=256
qwen3.5-2b | Qwen/Qwen3.5-2B (decoder) | 1.882 | qwen3_5_text | 2048 24 8 2 6144 248320 262144 | tied
  linear_num_value_heads=16 head_dim=256
qwen3.5-4b | Qwen/Qwen3.5-4B (decoder) | 4.206 | qwen3_5_text | 2560 32 16 4 9216 248320 262144 | tied
  linear_num_value_heads=32 head_dim=256
gemma-2b | google/gemma-2b | 2.506 | gemma | 2048 18 8 1 16384 256000 8192 | head_dim=256
gemma-7b | google/gemma-7b | 8.538 | gemma | 3072 28 16 16 24576 256000 8192 | head_dim=256
gemma-2-2b | google/gemma-2-2b | 2.614 | gemma2 | 2304 26 8 4 9216 256000 8192 | head_dim=256 sliding_window=4096
gemma-2-9b | google/gemma-2-9b | 9.242 | gemma2 | 3584 42 16 8 14336 256000 8192 | head_dim=256 sliding_window=4096
gemma-2-27b | google/gemma-2-27b | 27.227 | gemma2 | 4608 46 32 16 36864 256000 8192 | head_dim=128
  sliding_window=4096
gemma-3-270m | google/gemma-3-270m | 0.268 | gemma3_text | 640 18 4 1 2048 262144 32768 | head_dim=256
  sliding_window=512
gemma-3-1b | google/gemma-3-1b-it | 1.0 | gemma3_text | 1152 26 4 1 6912 262144 32768 | head_dim=256
  sliding_window=512
gemma-3-4b | google/gemma-3-4b-it (decoder) | 3.88 | gemma3_text | 2560 34 8 4 10240 262208 131072 | head_dim=256
  sliding_window=1024
gemma-3-12b | google/gemma-3-12b-it (decoder) | 11.766 | gemma3_text | 3840 48 16 8 15360 262208 131072 | head_dim=256
  sliding_window=1024
gemma-3-27b | google/gemma-3-27b-it (decoder) | 27.009 | gemma3_text | 5376 62 32 16 21504 262208 131072 |
  head_dim=128 sliding_window=1024
gemma-4-31b | google/gemma-4-31B-it (decoder) | 30.7 | gemma4_text | 5376 60 32 16 21504 262144 262144 | head_dim=256
  global_head_dim=512 sliding_window=1024 hidden_size_per_layer_input=0 attention_k_eq_v=true
  num_global_key_value_heads=4
gemma-4-26b-a4b | google/gemma-4-26B-A4B-it (decoder) | 25.2 | gemma4_text | 2816 30 16 8 2112 262144 262144 |
  head_dim=256 global_head_dim=512 sliding_window=1024 hidden_size_per_layer_input=0 attention_k_eq_v=true
  num_global_key_value_heads=2 enable_moe_block=true num_experts=128 top_k_experts=8 moe_intermediate_size=704
phi-1.5 | microsoft/phi-1_5 | 1.418 | phi | 2048 24 32 32 8192 51200 2048 | partial_rotary_factor=0.5
phi-2 | microsoft/phi-2 | 2.78 | phi | 2560 32 32 32 10240 51200 2048 | partial_rotary_factor=0.4
phi-3-mini-4k | microsoft/Phi-3-mini-4k-instruct | 3.821 | phi3 | 3072 32 32 32 8192 32064 4096 | sliding_window=2047
phi-3-mini-128k | microsoft/Phi-3-mini-128k-instruct | 3.821 | phi3 | 3072 32 32 32 8192 32064 131072 |
  sliding_window=262144
phi-3-medium | microsoft/Phi-3-medium-128k-instruct | 13.96 | phi3 | 5120 40 40 10 17920 32064 131072 |
  sliding_window=131072
phi-3.5-mini | microsoft/Phi-3.5-mini-instruct | 3.821 | phi3 | 3072 32 32 32 8192 32064 131072 |
  sliding_window=262144
phi-3.5-moe | microsoft/Phi-3.5-MoE-instruct | 41.873 | phimoe | 4096 32 32 8 6400 32064 131072 | num_local_experts=16
  num_experts_per_tok=2 attention_bias=true lm_head_bias=true sliding_window=131072
phi-4 | microsoft/phi-4 | 14.66 | phi3 | 5120 40 40 10 17920 100352 16384
phi-4-mini | microsoft/Phi-4-mini-instruct | 3.836 | phi3 | 3072 32 24 8 8192 200064 131072 | tied
  partial_rotary_factor=0.75 sliding_window=262144
deepseek-v2-lite | deepseek-ai/DeepSeek-V2-Lite | 15.706 | deepseek_v2 | 2048 27 16 16 10944 102400 163840 |
  q_lora_rank=null kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_shared_experts=2
  first_k_dense_replace=1 n_routed_experts=64 num_experts_per_tok=6 moe_intermediate_size=1408
deepseek-v2 | deepseek-ai/DeepSeek-V2 | 235.74 | deepseek_v2 | 5120 60 128 128 12288 102400 163840 | q_lora_rank=1536
  kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_shared_experts=2 first_k_dense_replace=1
  n_routed_experts=160 num_experts_per_tok=6 moe_intermediate_size=1536
deepseek-v3 | deepseek-ai/DeepSeek-V3 | 671.03 | deepseek_v3 | 7168 61 128 128 18432 129280 163840 | q_lora_rank=1536
  kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_shared_experts=1 first_k_dense_replace=3
  n_routed_experts=256 num_experts_per_tok=8 moe_intermediate_size=2048
deepseek-ocr | deepseek-ai/DeepSeek-OCR (decoder) | 2.92 | deepseek_v2 | 1280 12 10 10 6848 129280 8192 |
  use_mla=false n_shared_experts=2 first_k_dense_replace=1 n_routed_experts=64 num_experts_per_tok=6
  moe_intermediate_size=896
minicpm3-4b | openbmb/MiniCPM3-4B | 4.074 | minicpm3 | 2560 62 40 40 6400 73448 32768 | q_lora_rank=768
  kv_lora_rank=256 qk_nope_head_dim=64 qk_rope_head_dim=32 v_head_dim=64
qwen3-next-80b-a3b | Qwen/Qwen3-Next-80B-A3B-Instruct | 79.67 | qwen3_next | 2048 48 16 2 5632 151936 262144 |
  head_dim=256 num_experts=512 num_experts_per_tok=10 moe_intermediate_size=512 shared_expert_intermediate_size=512
qwen3.5-35b-a3b | Qwen/Qwen3.5-35B-A3B (decoder) | 34.66 | qwen3_5_moe_text | 2048 40 16 2 512 248320 262144 |
  head_dim=256 num_experts=256 num_experts_per_tok=8 moe_intermediate_size=512 shared_expert_intermediate_size=512
qwen3.5-27b | Qwen/Qwen3.5-27B (decoder) | 26.9 | qwen3_5_text | 5120 64 24 4 17408 248320 262144 | head_dim=256
  linear_num_value_heads=48
llama-4-scout | meta-llama/Llama-4-Scout-17B-16E (decoder) | 107.77 | llama4_text | 5120 48 40 8 8192 202048 10485760
  | head_dim=128 num_local_experts=16 num_experts_per_tok=1 intermediate_size_mlp=16384 attention_chunk_size=8192
granite-3.0-1b-a400m | ibm-granite/granite-3.0-1b-a400m-base | 1.335 | granitemoe | 1024 24 16 8 512 49155 4096 | tied
  num_local_experts=32 num_experts_per_tok=8
command-r7b | CohereLabs/c4ai-command-r7b-12-2024 | 8.028 | cohere2 | 4096 32 32 8 14336 256000 132096
command-r | CohereLabs/c4ai-command-r-v01 | 34.98 | cohere | 8192 40 64 64 22528 256000 131072
exaone-4.0-1.2b | LGAI-EXAONE/EXAONE-4.0-1.2B | 1.279 | exaone4 | 2048 30 32 8 4096 102400 65536 | tied head_dim=64
  sliding_window=null
olmo-3-7b | allenai/Olmo-3-1025-7B | 7.298 | olmo3 | 4096 32 32 32 11008 100278 65536 | sliding_window=4096
ernie-4.5-0.3b | baidu/ERNIE-4.5-0.3B-PT | 0.361 | ernie4_5 | 1024 18 16 2 3072 103424 131072 | head_dim=128
nemotron-mini-4b | nvidia/Nemotron-Mini-4B-Instruct | 4.19 | nemotron | 3072 32 24 8 9216 256000 4096 | head_dim=128
seed-oss-36b | ByteDance-Seed/Seed-OSS-36B-Instruct | 36.15 | seed_oss | 5120 64 80 8 27648 155136 524288 |
  head_dim=128 attention_bias=true attention_out_bias=false
internlm3-8b | internlm/internlm3-8b-instruct | 8.80 | internlm3 | 4096 48 32 2 10240 128512 32768 | head_dim=128
ministral-8b | mistralai/Ministral-8B-Instruct-2410 | 8.02 | mistral | 4096 36 32 8 12288 131072 32768 | head_dim=128
  sliding_window=32768
gpt-neo-1.3b | EleutherAI/gpt-neo-1.3B | 1.316 | gpt_neo | | hidden_size=2048 num_layers=24 num_heads=16
  vocab_size=50257
codegen-2b | Salesforce/codegen-2B-mono | 2.779 | codegen | | n_embd=2560 n_layer=32 n_head=32 vocab_size=51200
  rotary_dim=64
kimi-k2 | moonshotai/Kimi-K2-Instruct | 1026.4 | kimi_k2 | 7168 61 64 64 18432 163840 131072 | q_lora_rank=1536
  kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 n_shared_experts=1 first_k_dense_replace=1
  n_routed_experts=384 num_experts_per_tok=8 moe_intermediate_size=2048
lfm2-350m | LiquidAI/LFM2-350M | 0.3545 | lfm2 | 1024 16 16 8 6656 65536 128000 | full_attn_idxs=2,5,8,10,12,14
lfm2-700m | LiquidAI/LFM2-700M | 0.7425 | lfm2 | 1536 16 24 8 10240 65536 128000 | full_attn_idxs=2,5,8,10,12,14
lfm2-1.2b | LiquidAI/LFM2-1.2B | 1.170 | lfm2 | 2048 16 32 8 12288 65536 128000 | full_attn_idxs=2,5,8,10,12,14
bamba-9b | ibm-ai-platform/Bamba-9B-v1 | 9.78 | bamba | 4096 32 32 8 14336 128256 262144 | mamba_n_heads=128
  mamba_d_state=128 attn_layer_indices=9,18,27
gpt-oss-20b | openai/gpt-oss-20b | 20.915 | gpt_oss | 2880 24 64 8 2880 201088 131072 | head_dim=64
  num_local_experts=32 num_experts_per_tok=4
gpt-oss-120b | openai/gpt-oss-120b | 116.83 | gpt_oss | 2880 36 64 8 2880 201088 131072 | head_dim=64
  num_local_experts=128 num_experts_per_tok=4
olmo-1b | allenai/OLMo-1B-hf | 1.177 | olmo | 2048 16 16 16 8192 50304 2048 | tied
olmo-7b | allenai/OLMo-7B-hf | 6.888 | olmo | 4096 32 32 32 11008 50304 2048
olmo-2-7b | allenai/OLMo-2-1124-7B | 7.299 | olmo2 | 4096 32 32 32 11008 100352 4096
olmoe-1b-7b | allenai/OLMoE-1B-7B-0924 | 6.919 | olmoe | 2048 16 16 16 1024 50304 4096 | num_experts=64
  num_experts_per_tok=8
stablelm-2-1.6b | stabilityai/stablelm-2-1_6b | 1.645 | stablelm | 2048 24 32 32 5632 100352 4096 | use_qkv_bias=true
stablelm-3b | stabilityai/stablelm-3b-4e1t | 2.795 | stablelm | 2560 32 32 32 6912 50304 4096
starcoder2-3b | bigcode/starcoder2-3b | 3.03 | starcoder2 | 3072 30 24 2 12288 49152 16384 | sliding_window=4096
glm-4-9b | THUDM/glm-4-9b-hf | 9.4 | glm | 4096 40 32 2 13696 151552 131072 | head_dim=128
chatglm3-6b | THUDM/chatglm3-6b | 6.244 | chatglm | | hidden_size=4096 num_layers=28 num_attention_heads=32
  multi_query_attention=true multi_query_group_num=2 kv_channels=128 ffn_hidden_size=13696 padded_vocab_size=65024
  seq_length=8192 add_qkv_bias=true
gpt2 | openai-community/gpt2 | 0.1244 | gpt2 | | n_embd=768 n_layer=12 n_head=12 vocab_size=50257
gpt2-xl | openai-community/gpt2-xl | 1.558 | gpt2 | | n_embd=1600 n_layer=48 n_head=25 vocab_size=50257
gpt-j-6b | EleutherAI/gpt-j-6b | 6.053 | gptj | | n_embd=4096 n_layer=28 n_head=16 vocab_size=50400 rotary_dim=64
starcoder-15b | bigcode/starcoder | 15.518 | gpt_bigcode | | n_embd=6144 n_layer=40 n_head=48 vocab_size=49152
  n_positions=8192 n_inner=24576
gpt-neox-20b | EleutherAI/gpt-neox-20b | 20.555 | gpt_neox | 6144 44 64 64 24576 50432 2048
opt-125m | facebook/opt-125m | 0.1252 | opt | 768 12 12 3072 50272 2048 768
opt-350m | facebook/opt-350m | 0.3312 | opt | 1024 24 16 4096 50272 2048 512 | do_layer_norm_before=false
opt-1.3b | facebook/opt-1.3b | 1.316 | opt | 2048 24 32 8192 50272 2048 2048
opt-2.7b | facebook/opt-2.7b | 2.652 | opt | 2560 32 32 10240 50272 2048 2560
opt-6.7b | facebook/opt-6.7b | 6.658 | opt | 4096 32 32 16384 50272 2048 4096
opt-13b | facebook/opt-13b | 12.853 | opt | 5120 40 40 20480 50272 2048 5120
opt-30b | facebook/opt-30b | 29.975 | opt | 7168 48 56 28672 50272 2048 7168
opt-66b | facebook/opt-66b | 65.718 | opt | 9216 64 72 36864 50272 2048 9216
bloom-560m | bigscience/bloom-560m | 0.559 | bloom | | hidden_size=1024 n_layer=24 n_head=16 vocab_size=250880
bloom-7b1 | bigscience/bloom-7b1 | 7.069 | bloom | | hidden_size=4096 n_layer=30 n_head=32 vocab_size=250880
mpt-7b | mosaicml/mpt-7b | 6.649 | mpt | | d_model=4096 n_layers=32 n_heads=32 vocab_size=50432 max_seq_len=2048
falcon-7b | tiiuae/falcon-7b | 7.217 | falcon | | hidden_size=4544 num_hidden_layers=32 num_attention_heads=71
  vocab_size=65024
falcon-40b | tiiuae/falcon-40b | 41.84 | falcon | | hidden_size=8192 num_hidden_layers=60 num_attention_heads=128
  num_kv_heads=8 vocab_size=65024 new_decoder_architecture=true
"""

# Where the sizes of a row were found again. `litgpt`: Lightning-AI/litgpt, config.py. `aiconfigurator`: published
# config.json files in ai-dynamo/aiconfigurator. `mlc-llm`: model_preset.py. `llm-analysis`: cli99/llm-analysis.
# `transformers`: defaults of the config class, but for the context. `nemo`: NVIDIA/NeMo, collections/llm/gpt/model.
# `maxtext`: AI-Hypercomputer/maxtext, configs/models. `genz`: model sets of GenZ. `quoted`: a config.json that tests
# of a public project quote. `equal`: the sizes of another row, whose fine-tuned or nested form it is. `count`: nothing
# but the stated number of parameters speaks for them. Not every file has windows, contexts and whether a head is tied:
# litgpt has 4,096 positions for Falcon 3 1B and windows of Phi one longer, of which the rows here keep their own.
_FOUND = """
litgpt: codellama-34b llama-2-7b llama-2-13b llama-2-70b llama-3-8b llama-3-70b llama-3.2-1b llama-3.2-3b
  llama-3.3-70b tinyllama-1.1b smollm2-135m smollm2-360m smollm2-1.7b falcon3-1b falcon3-3b falcon3-7b falcon3-10b
  mistral-7b mistral-7b-v0.3 qwen2.5-0.5b qwen2.5-1.5b qwen2.5-3b qwen2.5-7b qwen2.5-14b qwen2.5-32b qwen2.5-72b
  qwen2.5-coder-1.5b deepseek-r1-distill-llama-8b qwen3-4b qwen3-14b gemma-2-2b gemma-2-9b gemma-2-27b gemma-3-12b
  gemma-3-27b phi-1.5 phi-2 phi-3-mini-4k phi-3-mini-128k phi-3.5-mini phi-4 olmo-1b olmo-7b falcon-7b falcon-40b
aiconfigurator: llama-3.1-8b llama-3.1-70b llama-3.1-405b mixtral-8x7b mixtral-8x22b qwen3-0.6b qwen3-1.7b qwen3-8b
  qwen3-32b qwen3-vl-2b qwen3-30b-a3b qwen3-235b-a22b gemma-4-31b gemma-4-26b-a4b deepseek-v3 qwen3.5-35b-a3b
  qwen3.5-27b llama-4-scout kimi-k2 gpt-oss-20b gpt-oss-120b
mlc-llm: internlm2-7b deepseek-moe-16b minicpm-2b gemma-2b gemma-3-1b phi-4-mini olmo-2-7b stablelm-2-1.6b stablelm-3b
  chatglm3-6b gpt2 gpt-j-6b baichuan2-7b
llm-analysis: gpt-neo-1.3b gpt2-xl opt-125m opt-350m opt-1.3b opt-6.7b opt-13b opt-66b bloom-560m bloom-7b1
transformers: amber-7b amberchat-7b gemma-7b smollm3-3b minicpm3-4b command-r internlm3-8b ernie-4.5-0.3b glm-4-9b
  gpt-neox-20b
nemo: mistral-nemo-12b qwen2-0.5b qwen2-1.5b qwen2-7b qwen2-72b nemotron-mini-4b starcoder-15b starcoder2-3b
maxtext: deepseek-v2-lite deepseek-v2 qwen3-next-80b-a3b olmo-3-7b
genz: phi-3-medium ministral-8b opt-30b
quoted: granite-3.1-2b granite-3.1-8b granite-3.0-1b-a400m minicpm4-0.5b minicpm4-8b mistral-small-24b
  qwen1.5-moe-a2.7b qwen3.5-0.8b qwen3.5-2b qwen3.5-4b gemma-3-270m gemma-3-4b phi-3.5-moe deepseek-ocr
  exaone-4.0-1.2b seed-oss-36b lfm2-350m lfm2-1.2b olmoe-1b-7b opt-2.7b
equal: qwen2-vl-2b deepseek-r1-distill-qwen-1.5b deepseek-r1-distill-qwen-7b
count: internlm2-1.8b baichuan2-13b command-r7b codegen-2b lfm2-700m bamba-9b mpt-7b
"""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A model that is known by name."""

    name: str
    source: str  # where its config is published
    parameters: float  # as stated for it, in billions
    config: Mapping[str, object]
    found_in: str  # where its sizes were found again


def _found() -> Mapping[str, str]:
    lines = _FOUND.strip().replace("\n  ", " ").splitlines()
    return {name: source for source, _, names in (line.partition(":") for line in lines) for name in names.split()}


def _rows() -> Iterator[BuiltIn]:
    found = _found()
    for row in _TABLE.strip().replace("\n  ", " ").splitlines():
        name, source, parameters, family, sizes, *more = (cell.strip() for cell in row.split("|"))
        names = _OPT if family == "opt" else _SIZES
        fields: dict[str, object] = {"model_type": family}
        if sizes:
            fields |= zip(names, (int(size) for size in sizes.split()), strict=True)
        for word in " ".join(more).split():
            key, _, value = word.partition("=")
            fields[key if value else "tie_word_embeddings"] = _value(value or "true")
        yield BuiltIn(name, source, float(parameters), fields, found[name])


def _value(word: str) -> object:
    if word in _WORDS:
        return _WORDS[word]
    if "," in word:
        return [int(each) for each in word.split(",")]
    return float(word) if "." in word else int(word)


BUILT_IN: Mapping[str, BuiltIn] = {row.name: row for row in _rows()}

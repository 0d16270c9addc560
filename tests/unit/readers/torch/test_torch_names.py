"""Models of PyTorch by name: factories, and configs of transformers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import opscope
from opscope.core.errors import ProfilerError
from opscope.readers.torch import load

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def test_a_factory_may_return_example_inputs_or_leave_them_to_shapes() -> None:
    made = load(Path("support.models.torch_networks:mlp"))
    assert (made.name, made.source, made.inputs[0].shape) == ("mlp", "support.models.torch_networks:mlp", (2, 16))
    bare = load(Path("support.models.torch_networks:bare")).with_shapes({"x": (2, 16)}, None)
    assert bare.keywords["x"].shape == (2, 16)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "support.models.torch_networks:bare",
            r"has no example inputs; expected \(module, example_inputs\), or --shape x=…",
        ),
        (
            "support.models.torch_networks:wrong",
            r"returns str; expected a torch\.nn\.Module, or \(module, example_inputs\)",
        ),
        (
            "support.models.torch_networks:nothing",
            r"support\.models\.torch_networks has no nothing; expected a function that makes a module",
        ),
        ("no_such_package:net", r"cannot be imported \(No module named 'no_such_package'\); expected package\.module"),
        ("hf:no/such/folder", "there is no such folder or config; expected one on this machine"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_line(name: str, message: str) -> None:
    with pytest.raises(ProfilerError, match=f"^{name}: {message}"):
        opscope.read(name)


def test_a_module_of_the_working_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import torch\ndef relu():\n    return torch.nn.ReLU(), torch.zeros(2, 3)\n"
    (tmp_path / "only_here_networks.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert load(Path("only_here_networks:relu")).inputs[0].shape == (2, 3)
    assert sys.path == before


def test_a_config_of_transformers_is_read_without_weights(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    graph = opscope.read(f"hf:{tmp_path / 'tiny'}", shapes={"input_ids": (1, 8)})
    assert graph.name == "tiny"
    tokens, layer, attention = 8, 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128, 2 * 8 * 8 * 64
    products = 2 * (tokens * layer + attention) + tokens * 64 * 100
    assert opscope.report(graph, "aic100-std", advise=False).totals.macs == products
    assert {op.module for op in graph.ops if op.type == "Softmax"} == {f"model.layers.{n}.self_attn" for n in (0, 1)}
    assert all(op.line.startswith("transformers/") for op in graph.ops)
    assert any("read at input_ids 1x128" in note.text for note in graph.notes)


def test_without_torch_a_model_of_it_names_the_extra(tmp_path: Path) -> None:
    import subprocess

    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from opscope.cli import main\n"
        "sys.exit(main(['report', 'support.models.torch_networks:mlp', '--target', 'aic100-std']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    expected = (
        "opscope: support.models.torch_networks:mlp: the package torch is not installed; "
        "expected pip install 'opscope[torch]'\n"
    )
    assert (done.returncode, done.stderr) == (2, expected)

"""Every table of the schema module against the reference packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tflite
from ai_edge_litert import schema_py_generated as schema

from opscope.graph.graph import DType
from opscope.graph.kinds import KINDS
from opscope.readers.tflite import schema as tflite_schema
from opscope.readers.tflite.ops import ACTIVATION_FIELDS, ATTRIBUTES, ORDER
from opscope.readers.tflite.schema import ACTIVATIONS, BUILTINS, OPTIONS, OPTIONS_2, TENSOR_TYPES


def members(enum: type) -> dict[str, int]:
    return {name: value for name, value in vars(enum).items() if not name.startswith("_")}


def test_every_builtin_operator_has_its_name_and_a_kind() -> None:
    assert {builtin.name: code for code, builtin in enumerate(BUILTINS)} == members(schema.BuiltinOperator)
    assert {builtin.kind for builtin in BUILTINS} <= set(KINDS)


def test_the_other_reference_package_agrees_on_the_operators_it_knows() -> None:
    assert all(BUILTINS[code].name == name for name, code in members(tflite.BuiltinOperator).items())


def test_only_operators_that_say_nothing_of_their_work_are_custom() -> None:
    assert {builtin.name for builtin in BUILTINS if builtin.kind == "custom"} == {
        "CONCAT_EMBEDDINGS",
        "CUSTOM",
        "DELEGATE",
        "LSH_PROJECTION",
        "PLACEHOLDER_FOR_GREATER_OP_CODES",
        "SKIP_GRAM",
        "STABLEHLO_CUSTOM_CALL",
    }


def test_every_element_type_has_its_width() -> None:
    names = {code: name for name, code in members(schema.TensorType).items()}
    assert len(TENSOR_TYPES) == len(names)
    for code, dtype in enumerate(TENSOR_TYPES):
        digits = re.search(r"\d+", names[code])
        if digits is not None:
            assert dtype.bits == int(digits[0]), names[code]
    opaque = [names[code] for code, dtype in enumerate(TENSOR_TYPES) if dtype is DType.UNKNOWN]
    assert opaque == ["RESOURCE", "VARIANT"]


def test_every_fused_activation_is_a_kind() -> None:
    assert list(members(schema.ActivationFunctionType)) == ["NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"]
    assert ACTIVATIONS == ("", "relu", "clip", "clip", "tanh", "sign")
    assert set(ACTIVATIONS[1:]) <= set(KINDS)


def test_option_tables_have_the_numbers_of_their_unions() -> None:
    assert OPTIONS.items() <= members(schema.BuiltinOptions).items()
    assert OPTIONS_2.items() <= members(schema.BuiltinOptions2).items()
    assert {builtin.options for builtin in BUILTINS} == {"", *OPTIONS, *OPTIONS_2}


def test_translations_are_for_operators_that_exist() -> None:
    assert {*ATTRIBUTES, *ORDER, *ACTIVATION_FIELDS} <= {builtin.name for builtin in BUILTINS}


def field_numbers() -> dict[str, dict[str, int]]:
    """Table → field → number, read out of the builder functions that the schema compiler generated."""
    text = Path(schema.__file__).read_text()
    found: dict[str, dict[str, int]] = {}
    for table, name, slot in re.findall(r"def (\w+?)Add([A-Z]\w*)\(builder, \w+\):\n +builder\.\w+\((\d+)", text):
        found.setdefault(table, {})[name] = int(slot)
    return found


def test_fused_activations_are_in_the_fields_the_schema_gives_them() -> None:
    numbers = field_numbers()
    for builtin in BUILTINS:
        if builtin.name in ACTIVATION_FIELDS:
            assert ACTIVATION_FIELDS[builtin.name] == numbers[builtin.options]["FusedActivationFunction"], builtin.name


@pytest.mark.parametrize(
    ("ours", "table", "names"),
    [
        (
            "ModelField",
            "Model",
            "Version OperatorCodes Subgraphs Description Buffers Metadata SignatureDefs "
            "ExternalBufferGroups ExternalBuffers",
        ),
        ("OperatorCodeField", "OperatorCode", "DeprecatedBuiltinCode CustomCode Version BuiltinCode"),
        ("SubgraphField", "SubGraph", "Tensors Inputs Outputs Operators Name"),
        (
            "TensorField",
            "Tensor",
            "Shape Type Buffer Name Quantization IsVariable Sparsity ShapeSignature HasRank ExternalBuffer",
        ),
        (
            "OperatorField",
            "Operator",
            "OpcodeIndex Inputs Outputs BuiltinOptionsType BuiltinOptions CustomOptions BuiltinOptions2Type "
            "BuiltinOptions2",
        ),
        ("BufferField", "Buffer", "Data Offset Size"),
        ("ExternalBufferField", "ExternalBuffer", "Id Group Offset Length"),
        ("MetadataField", "Metadata", "Name Buffer"),
        ("SignatureField", "SignatureDef", "Inputs Outputs SignatureKey SubgraphIndex"),
        ("TensorMapField", "TensorMap", "Name TensorIndex"),
    ],
)
def test_field_numbers_are_the_schemas(ours: str, table: str, names: str) -> None:
    reference = field_numbers()[table]
    assert list(members(getattr(tflite_schema, ours)).values()) == [reference[name] for name in names.split()]

"""What a word says: of kernels and types of ops, calls, routes, lanes and engines of foreign files and old runs.

The only module that reads words. What no word tells stays unknown.
"""

from __future__ import annotations

import re

from .meaning import Carries, Does


def _set_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# ---- the words ------------------------------------------------------------------------------------------------------
#
# Patterns are searched in the lower-case head of a name. `_by_words` asks them in this order, and the first that fits
# decides, because names hold several of these words:
#
#   1. _STATS, _SYNC, _LAUNCH     work about other work:     "dma_start" launches, though it is about a DMA
#   2. _LAYOUT but _LAYOUT_NOT    same values, other form:   "Transpose" is; "ConvTranspose", "fused…" are not
#   3. _COMPUTING                 parts of words:            "xmma_fprop", "Convolution", "reduce_max"
#   4. _MULTICAST                 moves bytes
#   5. _MOVING, _MOVING_PARTS     same values, other place:  "Reshape", "GatherV2"; not "allgather"
#   6. _COMPUTING_WORDS           whole words alone:         "Add" computes, "Address" says nothing
#
# What none of them fits stays unknown. Types of ops that are one word, and mean more than it does elsewhere, are asked
# before: _MOVING_TYPES.

_MOST_READ = 120  # characters of a name: what it does stands at its head
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of a name: "LRNOp" → LRN, Op
_VERSION = re.compile(r"_?V\d+$")  # of a type: "GatherV2"

# work about other work
_STATS = re.compile(r"endcyclestats|end_of_stats")
_SYNC = re.compile(r"synchroni[sz]e|^sync\b|\bbarrier\b|^wait|\bwait\b|semaphore|multicast\w*_in$")
_LAUNCH = re.compile(r"dma_start|_start\b|^start$|enqueue|launch")

# the same values in another form: order of axes, data type, tiling
_LAYOUT = re.compile(
    r"transpose|permute|convert|\bcast|_cast|reformat|reorder|relayout|tolayout|swizzle|im2col|(de|re)?quanti[sz]e"
    r"|nchw.?to|nhwc.?to|to.?nchw|to.?nhwc|^copy|copy_|\bcopy\b|slice_pad|(depth|batch).?to.?space"
    r"|space.?to.?(depth|batch)|sparse.?to.?dense|flat_(to|from)|(to|from)_?(flat|crouton)|^pack|unpack"
    r"|nearest_?neighbou?r|(resize|upsample|interpolate)_?near",
)
_LAYOUT_NOT = re.compile(  # these compute
    r"fused|(conv(olution)?_?(2d|d32)?|matmul|attention|lstm)$|conv\w*transpose|transpose_?conv|deconv"
)

# the same values in another place or shape
_MOVING = _set_of(
    "squeeze unsqueeze reshape flatten slice concat concatenate concatenation gather scatter split pad padding expand "
    "tile identity view shape shuffle cast cat strided reverse unstack stack roll chunk clone contiguous fill splat "
    "crop unpool trans eye iota zeros ones diag lookup embedding hann hamming blackman"
)
_MOVING_PARTS = re.compile(
    r"(?<!all)(?<!all_)gather|(?<!reduce)(?<!reduce_)scatter|reshape|concat|squeeze|copy|one_?hot|non_?zero|col_?2_?im"
    r"|bitcast|index_?select|broadcast_?(to|args|in_?dim)|hashtable_(find|size)|feature_?(extract|vector)|mel_?weight"
)
_MOVING_TYPES = _set_of("size rank range constant compress dilate densify dropout")  # at inference; "fused_dropout" …
_WHERE = "WHERE"  # … computes. So spelt it is TensorFlow Lite's, which lists places; "Where" of others selects
_CONTAINERS = re.compile(r"(to|from)_?sequence|^optional")  # of tensors: such a type says nothing of work

# new values: parts of names, wherever they stand, and words that say so only as a whole
_COMPUTING = re.compile(
    r"conv|gemm|gemv|matmul|mat_mul|addmm|bmm|\bmm\b|broadcast(add|sub|mul|div)|fullyconnected"
    r"|fully_connected|inner_?product|einsum|attention|attn|sdpa|fmha|flash_(fwd|bwd)|lstm|winograd|nvjet|cijk_"
    r"|(?<!un)pool|clip|(?<!hash)table_?lookup|resize|resample|upsampl|interpolat|softmax|norm|reduc|argm(ax|in)|topk|cum(sum|prod)|nonmaxsup"
    r"|element(?!s)|eltwise|elemwise|[a-z]splat|relu|gelu|silu|swish|sigmoid|tanh|softplus|softsign|logistic|sqrt|recip"
    r"|trigon|depthwise|pointwise|fprop|dgrad|wgrad|xmma|cublas|cudnn|cutlass|foreignnode|myelin|dispatch|squared|leaky"
    r"|activation|moments|embedding_?bag|rotary|fake_?quant|fft|^is_?(inf|nan)"
)
_COMPUTING_WORDS = _set_of(
    "add sub mul div pow min max minimum maximum mean sum prod neg negate abs exp log erf floor ceil round sign sin "
    "cos tan asin acos atan sinh cosh asinh acosh atanh sine cosine exponential power remainder cbrt shift equal "
    "greater less not and or xor where select clip clamp elu selu celu mish glu square linear dense fc dot gru rnn "
    "dft stft svdf mlp bias scale scaler affine shrink lrn binary unary subtract multiply divide mod compare "
    "logical prelu lut trilu random rng bernoulli multinomial hardmax sort unique sample roi real imag bucketize "
    "binarizer imputer dropout triton addsub"
)

# routes and copies: between which places bytes go
_MULTICAST = re.compile(r"multicast")
_HOST_LINK = re.compile(r"htod|dtoh|host.?to.?device|device.?to.?host")
_LINK = re.compile(r"ptop|p2p|multicast|all.?reduce|all.?gather|nccl|peer")
_OUTER = re.compile(r"\b(read|write)\b")
_CARRIES = (  # words of a route, the first that fits: "DDR read" reads from outer memory
    (re.compile(r"\bread\b|\bin\b"), Carries.READ),
    (re.compile(r"\bwrite\b|\bout\b"), Carries.WRITE),
    (_HOST_LINK, Carries.HOST),
    (_MULTICAST, Carries.MULTICAST),
    (_LINK, Carries.LINK),
)

# lanes, engines and stages of the host
_DMA_LANE = re.compile(r"(^|\W)dma($|\W)")
_CPU = re.compile(r"^(cpu|host)|cpuexecutionprovider|\bcpu\b")
_TRANSFER_STAGE = re.compile(r"^(in|out)put transfer")
_QUEUE_STAGE = re.compile(r"^device queue")
_THREAD_NUMBER = re.compile(r"[ #_]t?\d+$")  # "vector t3" is a thread of "vector"

# resources and data types
_MEMORY = re.compile(r"s?d?ram|flash|ddr", re.IGNORECASE)
_FLOAT = re.compile(r"\bb?f(loat)?(16|32|64)?\b", re.IGNORECASE)


# ---- one name -------------------------------------------------------------------------------------------------------


def does_of_type(type_: str) -> Does:
    """Of an op, by the type that its source states."""
    if type_ == _WHERE or type_.lower() in _MOVING_TYPES:
        return Does.LAYOUT
    return Does.UNKNOWN if _CONTAINERS.search(type_.lower()) else does_of_kernel(_VERSION.sub("", type_))


def does_of_kernel(name: str) -> Does:
    """Of a routine, by the words of its name alone."""
    head = name[:_MOST_READ]
    word = head.lower()
    for pattern, does in ((_STATS, Does.STATS), (_SYNC, Does.SYNC), (_LAUNCH, Does.LAUNCH)):
        if pattern.search(word):
            return does
    if _LAYOUT.search(word) and not _LAYOUT_NOT.search(word):
        return Does.LAYOUT
    if _COMPUTING.search(word):
        return Does.COMPUTE
    if _MULTICAST.search(word):
        return Does.MOVE
    parts = {part.lower() for part in _WORDS.findall(head)}
    if parts & _MOVING or _MOVING_PARTS.search(word):
        return Does.LAYOUT
    return Does.COMPUTE if parts & _COMPUTING_WORDS else Does.UNKNOWN


def does_of_call(name: str) -> Does:
    """Of a call or a stage on the host."""
    word = name[:_MOST_READ].lower()
    if _TRANSFER_STAGE.search(word):
        return Does.MOVE
    return Does.SYNC if _SYNC.search(word) or _QUEUE_STAGE.search(word) else Does.HOST


def is_flush(name: str) -> bool:
    """Of a transfer: that it writes statistics out."""
    return bool(_STATS.search(name.lower()))


def carries_of(name: str) -> Carries:
    """Of a route, or of a copy, by its name."""
    word = name[:_MOST_READ].lower()
    return next((carries for pattern, carries in _CARRIES if pattern.search(word)), Carries.UNKNOWN)


def carries_of_copy(name: str) -> Carries:
    """Of a copy that names no route: between host and device, between devices, or not known."""
    word = name[:_MOST_READ].lower()
    if _HOST_LINK.search(word):
        return Carries.HOST
    return Carries.LINK if _LINK.search(word) and not _OUTER.search(word) else Carries.UNKNOWN


def is_memory(resource: str) -> bool:
    """A resource that bytes are moved from or to."""
    return bool(_MEMORY.search(resource))


def names_floats(types: str) -> bool:
    """Data types as a foreign file prints them."""
    return bool(_FLOAT.search(types))


def is_dma(lane: str) -> bool:
    return bool(_DMA_LANE.search(lane.lower()))


def is_cpu(engine: str) -> bool:
    return bool(_CPU.search(engine.lower()))


def engine_of_lane(lane: str) -> str:
    """The name without the number of a thread: `vector t3` is a `vector`."""
    return _THREAD_NUMBER.sub("", lane) or lane

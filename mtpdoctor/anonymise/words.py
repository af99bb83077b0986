"""Words that are nobody's own: names of software, places every machine has, hosts everybody knows."""

from __future__ import annotations

import re

from mtpdoctor.patterns import lazy


def words(text: str) -> frozenset[str]:
    """The words of ``text``, between blanks."""
    return frozenset(text.split())


# fmt: off
# never the name of a machine or person by themselves, wherever they stand
GENERIC = words(
    """
    localhost localdomain ip6-localhost broadcasthost none null nil true false unknown default auto any all self
    root user users admin administrator nobody daemon ubuntu debian centos rocky ec2-user azureuser opc jovyan vscode runner
    app appuser service worker workers master leader follower head node nodes server servers client host hosts hostname pod
    pods container containers docker podman kubernetes kubelet kernel systemd python python3 bash sh sglang vllm torch
    engine scheduler detokenizer tokenizer router gateway prefill decode gpu cuda nvidia rank model models the a an and
    or not is are was were be been has have had no name error errors failed failure info warning unreachable address port
    """
)
# sentences go on with these where "host:" or "node:" is a word and no key
PROSE = words(
    """
    cannot could can connection connect connecting connected refused timed timeout out of memory not no name unable
    failed is was with from to at on in for by the an its this that only and or if all any none invalid missing
    required requires expected found given set unset use using see please start started starting stopped waiting lost
    """
)
# folders that are laid out alike everywhere
PUBLIC_PARTS = words(
    """
    usr bin sbin lib lib64 lib32 libexec etc dev proc sys run var tmp opt home root mnt media srv data data1 data2 nfs share
    shared scratch work workspace volumes volume disk disks storage models model weights checkpoints checkpoint ckpt ckpts
    hub snapshots refs blobs cache .cache huggingface modelscope local .local share site-packages dist-packages include src
    python python3 venv .venv env envs conda miniconda3 anaconda3 miniforge3 mambaforge pkgs Users logs log config configs
    conf templates template adapters adapter lora loras datasets dataset tokenizer processor shm cuda rocm nvidia gpu
    sgl-workspace sglang sglang_source sgl-kernel sgl_kernel srt pytorch torch vllm triton transformers flashinfer deepep
    build csrc kernels jit .triton torch_extensions torchinductor inductor outlines xgrammar app apps code repo repos git
    gguf fp8 fp16 bf16 awq gptq int8 int4 base chat instruct main original llm llms hf net null missing nope v1 v2
    x86_64-linux-gnu aarch64-linux-gnu third_party nccl certs ssl ssh .ssh .config bundle systemd system services
    kfd dri kernel numa_balancing cached_ops autotune ascend ascend-toolkit latest resolve .sglang gpustack aiter_configs layers
    quantization jit_kernels nvidia_entrypoint.sh cuda_utils.c api infiniband pci drivers devices
    containers docker kubernetes pods kubelet overlay2 serviceaccount secrets cgroup fs net class self fd
    """
)
PUBLIC_FILES = words(
    """
    config.json generation_config.json tokenizer.json tokenizer_config.json tokenizer.model special_tokens_map.json
    added_tokens.json vocab.json merges.txt preprocessor_config.json processor_config.json chat_template.json
    chat_template.jinja video_preprocessor_config.json model.safetensors model.safetensors.index.json adapter_config.json
    adapter_model.safetensors adapter_model.bin pytorch_model.bin pytorch_model.bin.index.json params.json
    consolidated.safetensors hf_quant_config.json quantize_config.json quant_config.json index.json server.log
    launch_server.py README.md activate nvcc gcc g++ ld sh bash python3.10 python3.11 python3.12 python3.13
    .env docker-compose.yml docker-compose.yaml compose.yml compose.yaml Dockerfile meminfo cmdline environ status
    """
)
# a path on an API is no file's
ROUTES = words(
    """
    generate health health_generate get_model_info model_info get_server_info server_info v1 metrics flush_cache
    start_profile stop_profile encode classify abort_request update_weights_from_disk update_weights_from_tensor
    update_weights_from_distributed init_weights_update_group release_memory_occupation resume_memory_occupation
    get_weights_by_name get_load invocations ping tokenize detokenize openapi.json docs rerank score
    load_lora_adapter unload_lora_adapter open_session close_session pause_generation continue_generation
    api set_internal_state freeze_gc separate_reasoning parse_function_call register route set_trace_level workers
    """
)
_PUBLIC_NAMES = {  # ending of the host -> names before it
    "co": "huggingface hf",
    "com": (
        "hf-mirror github githubusercontent githubassets gitlab nvidia amd intel modelscope docker "
        "tiangolo ubuntu anaconda openai aliyun redhat stackoverflow npmjs microsoft google slack medium "
        "deepseek"
    ),
    "io": "github docker ghcr quay nvcr gcr readthedocs sglang conda kubernetes k8s ray encode crates pypa",
    "org": (
        "pytorch pypi pythonhosted python lmsys kernel debian anaconda uvicorn arxiv fedoraproject "
        "wikipedia apache gnu w3 json-schema ietf mozilla rust-lang golang"
    ),
    "cn": "modelscope",
    "ai": "sglang flashinfer qwen mistral",
    "dev": "pydantic",
    "edu.cn": "tsinghua",
    "gg": "discord",
}
_PUBLIC_HOSTS = frozenset(f"{name}.{end}" for end, names in _PUBLIC_NAMES.items() for name in words(names))
# fmt: on

_FAMILIES = (
    r"qwen|qwq|qvq|llama|deepseek|mistral|mixtral|ministral|magistral|devstral|codestral|pixtral|gemma|glm|chatglm|gpt-?oss|gpt2"
    r"|phi-?\d|kimi|moonlight|minimax|mimo|nemotron|granite|olmo|falcon|command-?r|c4ai|aya|dbrx|grok|ernie|hunyuan|internlm"
    r"|internvl|intern-s|baichuan|yi-|step-?\d|longcat|ling-|ring-|bailing|bge|gte-|e5-|llava|minicpm|exaone|solar|starcoder"
    r"|codellama|vicuna|mpt-|bloom|opt-\d|t5|whisper|clip|siglip|stablelm|smol|jamba|mamba|rwkv|arctic|apertus|seed-oss"
    r"|dots|paddleocr|mineru|got-ocr|voxtral|lfm|afm|tinyllama|zephyr|openchat|hermes|eagle|medusa|embeddinggemma|nvila"
)
_FAMILY = lazy(rf"(?i)(?:meta-|nvidia-|sglang-)?(?:{_FAMILIES})")
# what else stands in the names of published models: sizes, versions, dates, kinds
_MODEL_PART = lazy(
    rf"(?i)(?:{_FAMILIES.replace('-', '-?')})?[a-z]?\d[\w.]*|(?:{_FAMILIES.replace('-', '-?')})|[a-z]|[vr]\d*|x\d+[bm]"
    r"|instruct|chat|base|it|pt|hf|coder|code|math|thinking|reasoning|reasoner|vl|vision|omni|audio|embedding|reranker|next|mtp|nextn"
    r"|eagle3?|draft|distill|lite|mini|small|medium|large|nano|super|ultra|max|pro|plus|flash|air|turbo|tiny|moe|preview|exp|latest"
    r"|awq|gptq|marlin|gguf|fp4|fp8|fp16|bf16|int4|int8|w4a16|w8a8|w4afp8|nvfp4|mxfp4|mxfp8|dynamic|block|channel|kv|nf4|bnb|bit|oss"
    r"|scout|maverick|guard|meta|nvidia|zero|speciale|terminus|linear|vlm|dense|sparse|long|context|text|image|captioner|sglang"
    r"|gpt|phi|yi|ling|ring|step|gte|bge|opt|lfm|sft|dpo|rlhf|rl|gguf|safetensors|ocr|k|m|s|l|xl|xs|q|e|a|ar|llm|llms|pointwise|hybrid|8x|16e|128e|deep|seek|oasst|merged"
)
_HUB_FOLDER = lazy(r"(?:models|datasets)--[\w.-]+(?:--[\w.-]+)?$")
# parts that say what they are and whose they are not: shards, commits, versions, sizes, Python folders
_SHAPES = lazy(
    r"(?:\.{1,2}|[0-9a-f]{40}|v?\d+(?:\.\d+)*\w{0,6}|python\d(?:\.\d+)*|model-\d+-of-\d+\.\w+|pytorch_model-\d+-of-\d+\.bin"
    r"|consolidated\.\d+\.\w+|cuda-?\d[\d.]*|rocm-?\d[\d.]*|cu\d{3}|py\d+(?:_\w+)?|lib[\w+.-]*\.so(?:\.\d+)*(?: \(deleted\))?|nvidia\d+"
    r"|nccl-\w+|tmp\w{8,}[\w.]*|triton_[\d_]+|sm\d+\w?|\w*GB\w*|__\w+__(?:\.py)?)$"
)


def is_model_name(part: str) -> bool:
    """Does a folder's or file's name look like that of a published model (``Qwen3-32B``), with nothing of one's own
    in it (``Qwen3-32B-acme-support``)?"""
    if _HUB_FOLDER.match(part):
        return True
    parts = [p for p in re.split(r"[-_]+", part.removesuffix(".gguf")) if p]
    if len(parts) < 2 or not any(c.isdigit() for c in part) or not _FAMILY.match(part):
        return False
    return all(_MODEL_PART.fullmatch(p) for p in parts)


def is_public_part(part: str) -> bool:
    """A part of a path that says nothing of whose machine it is."""
    return (
        part in PUBLIC_PARTS
        or part.lower() in GENERIC
        or part in PUBLIC_FILES
        or part.lower() in PUBLIC_PARTS
        or bool(_SHAPES.match(part))
        or bool(
            re.fullmatch(
                r"(?i)(?:no|missing|bad|broken|tiny|dummy|none|test)[-_.]?(?:model|tokenizer|weights|config)?s?",
                part,
            )
        )
    )


def is_public_host(name: str) -> bool:
    """A host that everybody reaches: the Hub, GitHub, package registries, documentation."""
    name = name.lower().rstrip(".")
    labels = name.split(".")
    return any(".".join(labels[i:]) in _PUBLIC_HOSTS for i in range(len(labels) - 1))

"""How likely a difference is the reason: first by whether the bad launch's root cause reads it, then by what is known
to stop launches."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mtpdoctor.diagnose.types import Diagnosis, Report
from mtpdoctor.kb.conditions import fact_names
from mtpdoctor.kb.knowledge import Knowledge
from mtpdoctor.kb.types import Rule
from mtpdoctor.launch.types import EditOp
from mtpdoctor.patterns import lazy
from mtpdoctor.release import release_or_none
from mtpdoctor.sglang.flags import flag_table
from mtpdoctor.sglang.options import same_option

_FACT = lazy(r"\{((?:flag|arg|host|env|model|memory|log|step)\.[\w.-]+|release)")
_FLAG = lazy(r"--[a-z][\w-]+")
_WORD = lazy(r"[A-Za-z_]\w{3,}")

# (pattern of the field's name, weight); the first that fits counts
_ARGUMENTS: tuple[tuple[str, int], ...] = (
    (r"(?:port|random_seed|nccl_port|served_model_name|log_level.*|log_requests.*|show_time_cost|crash_dump_folder)$", 2),
    (r"(?:tokenizer_path|host|api_key|admin_api_key|decode_log_interval|enable_metrics.*|collect_tokens.*|watchdog_timeout)$", 5),
    (r"(?:ssl_.*|file_storage_path|storage_path|warmups|stream_.*|constrained_json.*|tokenizer_worker_num)$", 10),
    (r"model_path$", 60),
    (r"(?:quantization|load_format|tp_size|pp_size|dp_size|ep_size|nnodes|node_rank|enable_dp_attention|speculative_.*)", 55),
    (r"(?:.*attention_backend|mamba_.*|linear_attn_.*|moe_runner_backend|moe_a2a_backend|.*gemm_runner_backend)$", 55),
    (r"(?:mem_fraction_static|context_length|kv_cache_dtype|max_total_tokens|disable_radix_cache|disaggregation_.*)$", 50),
    (r"(?:dtype|page_size|.*cuda_graph.*|max_running_requests|enable_torch_compile|enable_hierarchical_cache|hicache_.*)$", 45),
    (r"(?:chunked_prefill_size|sampling_backend|grammar_backend|enable_lora|lora_.*|max_lora.*|trust_remote_code)$", 40),
    (r"(?:dist_init_addr|chat_template|tool_call_parser|reasoning_parser|disable_overlap_schedule|dist_timeout)$", 35),
    (r"", 30),
)  # fmt: skip
_ENVIRONMENT: tuple[tuple[str, int], ...] = (
    (r"CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|LD_LIBRARY_PATH|LD_PRELOAD", 50),
    (r"NCCL_|GLOO_|NVSHMEM_|MC_|UCX_|IB_", 45),
    (r"SGLANG_|SGL_|PYTORCH_|TORCH_|TRITON_|FLASHINFER_|CUDA_|VLLM_", 40),
    (r"(?i)HF_|HUGGING|TRANSFORMERS_|HTTPS?_PROXY|NO_PROXY|OMP_|PYTHON", 35),
    (r"PATH$|HOME$|PWD$|SHELL|TERM|LANG|LC_|USER|HOSTNAME|SLURM_JOB_ID", 5),
    (r"", 25),
)
_HOST = {
    "host.gpu.sm": 58, "host.gpu.name": 57, "host.gpu.count": 56, "host.gpu.memory_gib": 54, "host.gpu.free_gib": 50,
    "host.driver": 48, "host.cuda_driver": 48, "host.platform": 70, "host.shm_gib": 40, "host.ram_gib": 30,
    "host.container": 20, "host.nvcc": 30, "host.torch.cuda": 45, "host.kernel.version": 45, "host.python.version": 35,
    "host.cgroup_memory_gib": 35, "host.gpu.p2p": 35, "host.gpu.mig": 40,
}  # fmt: skip
_PACKAGES = re.compile(
    r"sglang|sgl-kernel|sglang-kernel|torch|flashinfer|transformers|triton|nccl|xgrammar|deep|cuda|cudnn"
)


class Relevance:
    """What the root cause of the bad launch reads."""

    def __init__(self, report: Report, knowledge: Knowledge) -> None:
        self.diagnosis: Diagnosis | None = report.diagnoses[0] if report.diagnoses else None
        rule_id = self.diagnosis.rule if self.diagnosis else None
        self.rule: Rule | None = knowledge.by_id.get(rule_id) if rule_id else None
        self._edited: dict[str, int] = {}
        self._read: set[str] = set()
        self._said: set[str] = set()
        self._reads_model = report.stage in ("config", "tokenizer", "weights") and report.outcome == "failed"
        if self.diagnosis is not None:
            self._of_diagnosis(self.diagnosis)
        if self.rule is not None:
            self._of_rule(self.rule)

    def weigh(self, names: Iterable[str], base: int, bad: object = None) -> tuple[int, str | None]:
        """The weight of a difference in a fact that goes by ``names`` (``arg.tp_size``), and the reason where it is
        more than ``base``. ``bad``: the value in the bad launch."""
        known = self.rule.id if self.rule else None
        all_names = set(names)
        edited = [self._edited[n] for n in all_names if n in self._edited]
        if edited:
            return max(100 - min(edited), 91), f"the remedy of {known or 'the failure'} changes it"
        if all_names & self._read:
            return 90, f"{known} depends on it"
        if all_names & self._said:
            return 85, "the error speaks of it"
        if "arg.model_path" in all_names and (
            self._reads_model or any(n.startswith("model.") for n in self._read)
        ):
            return 82, "the failure is one of the model or its files"
        text = self.diagnosis.root.text if self.diagnosis else ""
        if isinstance(bad, str) and len(bad) > 4 and bad in text:
            return 80, "its value stands in the error"
        return base, None

    def release(self, good: str, bad: str) -> tuple[int, str | None]:
        """The weight of another release."""
        if self.rule is not None and self.rule.releases.bounds:
            a, b = release_or_none(good), release_or_none(bad)
            if (
                a is not None
                and b is not None
                and self.rule.releases.holds(b)
                and not self.rule.releases.holds(a)
            ):
                return 93, f"{self.rule.id} occurs in {self.rule.releases} only"
        return self.weigh(("release",), 60)

    @property
    def asks_memory(self) -> bool:
        if any(
            n.startswith(("memory.", "log.avail", "host.gpu.free", "host.gpu.memory")) for n in self._read
        ):
            return True
        text = (self.diagnosis.root.text + self.diagnosis.title).lower() if self.diagnosis else ""
        return "out of memory" in text or "not enough memory" in text

    def _of_diagnosis(self, diagnosis: Diagnosis) -> None:
        for i, fix in enumerate(diagnosis.fixes):
            for edit in fix.edits:
                for name in _names_of_edit(edit.op, edit.name):
                    self._edited.setdefault(name, min(i, 9))
        lines = [diagnosis.root.text, *(value for _, value in diagnosis.captures)]
        for text in lines:
            for flag in _FLAG.findall(text):
                spec = flag_table(None).resolve(flag)
                if spec is not None:
                    self._said |= _arguments(spec.dest)
            for word in _WORD.findall(text):
                if "_" in word and flag_table(None).by_dest(word) is not None:
                    self._said |= _arguments(word)
                elif word.isupper() and "_" in word:
                    self._said.add(f"env.{word}")

    def _of_rule(self, rule: Rule) -> None:
        conditions = [
            rule.when,
            rule.predicts,
            *(r.when for r in rule.remedies),
            *(h.when for h in rule.here),
        ]
        names = {n for c in conditions if c is not None for n in fact_names(c)}
        for remedy in rule.remedies:
            for edit in remedy.edits:
                for name in _names_of_edit(EditOp(edit.op), edit.name):
                    names.add(name)
                names.update(_FACT.findall(edit.value or ""))
        names.update(_FACT.findall(" ".join((rule.title, rule.cause, *(h.cause for h in rule.here)))))
        for name in names:
            kind, _, rest = name.partition(".")
            self._read |= _arguments(rest) if kind in ("flag", "arg", "step") else {name}


def _arguments(dest: str) -> set[str]:
    return {f"arg.{d}" for d in same_option(dest)}


def _names_of_edit(op: EditOp, name: str) -> set[str]:
    if op in (EditOp.ENV, EditOp.UNSET):
        return {f"env.{name}"}
    if op in (EditOp.SET, EditOp.ADD, EditOp.REMOVE):
        spec = flag_table(None).resolve(name)
        return _arguments(spec.dest if spec is not None else name.lstrip("-").replace("-", "_"))
    return {f"container.{op.value}", "host.shm_gib"} if op is EditOp.SHM_SIZE else {f"container.{op.value}"}


def argument_weight(dest: str) -> int:
    return next(w for pattern, w in _ARGUMENTS if re.match(pattern, dest))


def environment_weight(name: str) -> int:
    return next(w for pattern, w in _ENVIRONMENT if re.match(pattern, name))


def host_weight(name: str) -> int:
    return _HOST.get(name, 15)


def package_weight(name: str) -> int:
    return 50 if _PACKAGES.search(name) else 22

"""Models, their files, packages and options."""

from __future__ import annotations

from tests.false_friends.build import MODEL, Pair, Side, died, main_died, site, weights

PAIRS = (
    Pair(
        "the model: the hub is out of reach, the path is wrong",
        Side(
            "--model-path Qwen/Qwen3-8B",
            main_died(
                "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\nCheck your internet connection or see how to run the library in offline mode at 'https://huggingface.co/docs/transformers/installation#offline-mode'.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"couldn't connect",
            r"HF_ENDPOINT|proxy|network|download|offline|connect",
        ),
        Side(
            "--model-path /model/Qwen3-8B",
            main_died(
                "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/model/Qwen3-8B'. Use `repo_type` argument if needed.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"Repo id must be",
            r"path|mount|folder|-v ",
            r"HF_ENDPOINT|HF_HUB_OFFLINE|HF_TOKEN",
        ),
    ),
    Pair(
        "the model: no such repository, no access to it",
        Side(
            "--model-path Qwen/Qwen3-8B-Instrukt",
            main_died(
                "OSError: Qwen/Qwen3-8B-Instrukt is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo either by logging in with `hf auth login` or by passing `token=<your_token>`",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"is not a local folder",
            r"name|spell|id|path",
        ),
        Side(
            "--model-path meta-llama/Llama-3.1-8B-Instruct",
            main_died(
                "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct.\n403 Client Error. (Request ID: Root=1-67)\n\nCannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct/resolve/main/config.json.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"gated repo",
            r"token|access|HF_TOKEN",
        ),
    ),
    Pair(
        "no kernel image: this torch is too old for the GPU, the GPU is too old",
        Side(
            f"{MODEL}",
            (
                "@/usr/lib/python3.12/site-packages/torch/cuda/__init__.py:235: UserWarning: ",
                "@NVIDIA RTX PRO 6000 Blackwell Server Edition with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
                "@The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.",
                *weights(93.4, None),
                *died(
                    "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                    ("model_loader/loader.py", 560, "load_model", "model = _initialize_model("),
                ),
            ),
            r"sm_120 is not compatible|no kernel image",
            r"torch|image|cu12[89]|cu13|wheel|CUDA 1[23]",
            r"--attention-backend|--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --dtype half",
            (
                "@/usr/lib/python3.12/site-packages/torch/cuda/__init__.py:283: UserWarning: ",
                "@    Found GPU0 Tesla V100-SXM2-32GB which is of cuda capability 7.0.",
                "@    Minimum and Maximum cuda capability supported by this version of PyTorch is",
                "@    (7.5) - (12.0)",
                *weights(31.4, None),
                *died(
                    "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                    ("model_loader/loader.py", 560, "load_model", "model = _initialize_model("),
                ),
            ),
            r"no kernel image|capability 7\.0|\(7\.5\)",
            r"torch|GPU|newer|SM|capabilit|older",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "EAGLE3: no draft was named, the draft is another model's",
        Side(
            f"{MODEL} --speculative-algorithm EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
            (
                *weights(78.4, 62.9),
                *died(
                    "AttributeError: 'Qwen3ForCausalLM' object has no attribute 'set_embed'",
                    (
                        "speculative/eagle_worker.py",
                        160,
                        "__init__",
                        "self.draft_model_runner.model.set_embed(embed)",
                    ),
                    site("torch/nn/modules/module.py", 1964, "__getattr__", "raise AttributeError("),
                ),
            ),
            r"set_embed",
            r"--speculative-draft-model-path|draft",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --speculative-algorithm EAGLE3 --speculative-draft-model-path /models/draft --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
            (
                *weights(78.4, 62.9),
                "Capture draft cuda graph begin. This can take up to several minutes. avail mem=9.11 GB",
                *died(
                    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x12288 and 15360x5120)",
                    (
                        "speculative/eagle_worker.py",
                        421,
                        "forward_target_extend",
                        "logits_output = self.draft_model_runner.forward(",
                    ),
                    ("models/llama_eagle3.py", 166, "forward", "hidden_states = self.fc(hidden_states)"),
                    site(
                        "torch/nn/modules/linear.py",
                        134,
                        "forward",
                        "return F.linear(input, self.weight, self.bias)",
                    ),
                ),
            ),
            r"shapes cannot be multiplied",
            r"draft",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "the configuration is not understood: transformers too old, code that was not trusted",
        Side(
            "--model-path Qwen/Qwen9-8B",
            main_died(
                "ValueError: The checkpoint you are trying to load has model type `qwen9` but Transformers does not recognize this architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.\n\nYou can update Transformers with the command `pip install --upgrade transformers`.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"does not recognize this architecture",
            r"transformers|release|image",
            r"add --trust-remote-code",
        ),
        Side(
            "--model-path moonshotai/Kimi-K2",
            main_died(
                "ValueError: The repository moonshotai/Kimi-K2 contains custom code which must be executed to correctly load the model. You can inspect the repository content at https://hf.co/moonshotai/Kimi-K2 .\n You can inspect the repository content at https://hf.co/moonshotai/Kimi-K2.\nPlease pass the argument `trust_remote_code=True` to allow custom code to be run.",
                ("utils/hf_transformers_utils.py", 210, "get_config", "config = AutoConfig.from_pretrained("),
            ),
            r"custom code|trust_remote_code",
            r"--trust-remote-code",
            r"pip install (-U|--upgrade) transformers",
        ),
    ),
    Pair(
        "an option this release does not know: it came later, it was another server's",
        Side(
            f"{MODEL} --mamba-scheduler-strategy extra_buffer",
            ("@launch_server.py: error: unrecognized arguments: --mamba-scheduler-strategy extra_buffer",),
            r"unrecognized arguments",
            r"image-tag|release|remove --mamba-scheduler-strategy|newer|upgrade|0\.5\.",
            releases=("0.5.1", "0.5.3"),
        ),
        Side(
            f"{MODEL} --max-model-len 32768",
            ("@launch_server.py: error: unrecognized arguments: --max-model-len 32768",),
            r"unrecognized arguments",
            r"--context-length 32768",
            releases=("0.5.9", "0.5.16"),
        ),
    ),
    Pair(
        "an option this release does not know: it was renamed, it is misspelt",
        Side(
            f"{MODEL} --mamba-scheduler-strategy extra_buffer --enable-ep-moe",
            ("@launch_server.py: error: unrecognized arguments: --enable-ep-moe",),
            r"unrecognized arguments",
            r"--ep-size|--ep |remove --enable-ep-moe",
            releases=("0.5.9", "0.5.10.post1"),
        ),
        Side(
            f"{MODEL} --mem-fraction-statik 0.8",
            ("@launch_server.py: error: unrecognized arguments: --mem-fraction-statik 0.8",),
            r"unrecognized arguments",
            r"--mem-fraction-static 0\.8",
            releases=("0.5.9", "0.5.16"),
        ),
    ),
    Pair(
        "mamba strategy and prefix cache: the first wants extra_buffer, the second wants it away",
        Side(
            "--model-path /models/Qwen3.5-27B --speculative-algorithm NEXTN --mamba-scheduler-strategy no_buffer",
            main_died(
                "ValueError: Speculative decoding for Qwen3_5ForConditionalGeneration is not compatible with radix cache when using --mamba-scheduler-strategy no_buffer. To use radix cache with speculative decoding, please use --mamba-scheduler-strategy extra_buffer and set SGLANG_ENABLE_SPEC_V2=1.",
                ("server_args.py", 2011, "_handle_mamba_radix_cache", "raise ValueError("),
            ),
            r"not compatible with radix cache",
            r"set --mamba-scheduler-strategy extra_buffer",
            releases=("0.5.10.post1", "0.5.13.post1"),
        ),
        Side(
            "--model-path /models/Qwen3.5-27B --speculative-algorithm NEXTN --mamba-scheduler-strategy extra_buffer --disable-radix-cache",
            main_died(
                "ValueError: mamba extra_buffer is not compatible with --disable-radix-cache. Please use --mamba-scheduler-strategy no_buffer or drop --disable-radix-cache.",
                ("server_args.py", 2031, "_handle_mamba_radix_cache", "raise ValueError("),
            ),
            r"extra_buffer",
            r"remove --mamba-scheduler-strategy|remove --disable-radix-cache|no_buffer",
            releases=("0.5.10.post1", "0.5.13.post1"),
        ),
    ),
    Pair(
        "the kernel package: for CUDA 12 on CUDA 13, for CUDA 13 on CUDA 12",
        Side(
            f"{MODEL}",
            main_died(
                "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
                ("utils/common.py", 41, "<module>", "import sgl_kernel"),
                site(
                    "sgl_kernel/load_utils.py",
                    151,
                    "_load_architecture_specific_ops",
                    "spec.loader.exec_module(common_ops)",
                ),
            ),
            r"libcudart\.so\.12",
            r"cu13|CUDA 13|cu130",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL}",
            main_died(
                "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory",
                ("utils/common.py", 41, "<module>", "import sgl_kernel"),
                site(
                    "sgl_kernel/load_utils.py",
                    151,
                    "_load_architecture_specific_ops",
                    "spec.loader.exec_module(common_ops)",
                ),
            ),
            r"libcudart\.so\.13",
            r"cu12|CUDA 12|12\.[0-9]",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "a weight file: cut off, a pointer of Git LFS",
        Side(
            f"{MODEL}",
            (
                *weights(78.4, None),
                *died(
                    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
                    (
                        "model_loader/weight_utils.py",
                        700,
                        "safetensors_weights_iterator",
                        'with safe_open(st_file, framework="pt") as f:',
                    ),
                ),
            ),
            r"MetadataIncompleteBuffer",
            r"[Dd]ownload|copy",
            r"git lfs pull",
        ),
        Side(
            f"{MODEL}",
            (
                *weights(78.4, None),
                *died(
                    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
                    (
                        "model_loader/weight_utils.py",
                        700,
                        "safetensors_weights_iterator",
                        'with safe_open(st_file, framework="pt") as f:',
                    ),
                ),
            ),
            r"HeaderTooLarge",
            r"[Ll][Ff][Ss]",
        ),
    ),
)

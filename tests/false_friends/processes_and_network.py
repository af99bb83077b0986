"""Processes, ports, nodes and GPUs."""

from __future__ import annotations

from tests.false_friends.build import (
    CALLS,
    INCREASE,
    MODEL,
    POOL,
    READY,
    Pair,
    Side,
    died,
    main_died,
    site,
    traceback,
    weights,
)

PAIRS = (
    Pair(
        "the message says increase: others hold the GPU, the weights fill it",
        Side(
            f"{MODEL} --mem-fraction-static 0.85",
            (*weights(2.9, 1.2), *died(INCREASE, POOL)),
            r"Please try to increase --mem-fraction-static",
            r"nvidia-smi|[Oo]ther process|free the GPU|[Ss]top what",
            r"set --mem-fraction-static 0\.9",
        ),
        Side(
            "--model-path /models/Qwen2.5-72B --mem-fraction-static 0.98 --tp 2",
            (*weights(78.4, 0.4), *died(INCREASE, POOL)),
            r"Please try to increase --mem-fraction-static",
            r"--tp(-size)? 4|more GPUs|quantiz|smaller",
            r"set --mem-fraction-static 0\.(99|1)|remove --mem-fraction-static",
        ),
    ),
    Pair(
        "exit code -9: the kernel's OOM killer, the server's own watchdog",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, None),
                "@[ 4711.203911] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=docker-1f2e.scope,mems_allowed=0-1,oom_memcg=/system.slice/docker-1f2e.scope,task_memcg=/system.slice/docker-1f2e.scope,task=sglang::schedul,pid=4711,uid=0",
                "@[ 4711.203977] Memory cgroup out of memory: Killed process 4711 (sglang::schedul) total-vm:91233412kB, anon-rss:64233412kB, file-rss:81232kB, shmem-rss:10244kB, UID:0 pgtables:133172kB oom_score_adj:0",
                "!Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
            ),
            r"Killed process|oom-kill",
            r"memory|RAM|limit",
            r"--watchdog-timeout",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, 62.9),
                "Memory pool end. avail mem=9.21 GB",
                f"!{READY}",
                "Prefill batch. #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.02, #running-req: 0, #queue-req: 3, ",
                "Watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
                "!Received sigquit from a child process. It usually means the child failed.",
                "!Subprocess scheduler_0 (pid=4711) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
            ),
            r"[Ww]atchdog timeout",
            r"watchdog|py-spy|hang|step",
            r"set --mem-fraction-static",
        ),
    ),
    Pair(
        "exit code -9: killed with no word why, stopped by a person",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, None),
                "!Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
            ),
            r"exit code: -9",
            r"dmesg",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, 62.9),
                f"!{READY}",
                '!INFO:     10.0.0.7:44112 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
                "!SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
                "!Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
                "@Killed",
            ),
            "",
            "",
        ),
    ),
    Pair(
        "a port is taken: of HTTP, of the process group",
        Side(
            f"{MODEL} --port 30000",
            (
                *weights(78.4, 62.9),
                "!INFO:     Started server process [411]",
                "!INFO:     Waiting for application startup.",
                "!INFO:     Application startup complete.",
                "!ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
            ),
            r"address already in use",
            r"set --port",
            r"--nccl-port|--dist-init-addr",
        ),
        Side(
            f"{MODEL} --tp 2 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.5:29500",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                    site("torch/distributed/rendezvous.py", 189, "_create_c10d_store", "return TCPStore("),
                ),
            ),
            r"EADDRINUSE",
            r"--dist-init-addr|--nccl-port|29500",
            r"set --port",
        ),
    ),
    Pair(
        "a port cannot be bound: taken, not allowed",
        Side(
            f"{MODEL} --port 8000",
            (
                *weights(78.4, 62.9),
                "!INFO:     Started server process [411]",
                "!ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
            ),
            r"address already in use",
            r"--port|stop|ss -",
        ),
        Side(
            f"{MODEL} --port 443",
            (
                *weights(78.4, 62.9),
                "!INFO:     Started server process [411]",
                "!ERROR:    [Errno 13] error while attempting to bind on address ('0.0.0.0', 443): permission denied",
            ),
            r"permission denied",
            r"set --port (?!443)\d{4,}|root|setcap",
        ),
    ),
    Pair(
        "waiting for others: a node that never came, a rank that died",
        Side(
            f"{MODEL} --tp 16 --nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.5:5000",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 8/16 clients joined.",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                    site("torch/distributed/rendezvous.py", 189, "_create_c10d_store", "return TCPStore("),
                ),
            ),
            r"waiting for clients",
            r"node|--dist-init-addr|address|firewall|start",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL} --tp 2 --quantization fp8",
            (
                *weights(78.4, None),
                "~TP1 Scheduler hit an exception: Traceback (most recent call last):",
                *traceback(
                    (
                        *CALLS,
                        (
                            "model_loader/weight_utils.py",
                            700,
                            "safetensors_weights_iterator",
                            'with safe_open(st_file, framework="pt") as f:',
                        ),
                    ),
                    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
                )[1:],
                "@",
                *died(
                    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:41223",
                    ("model_executor/model_runner.py", 980, "load_model", "dist.monitored_barrier("),
                ),
            ),
            r"MetadataIncompleteBuffer|deserializing header",
            r"download|copy|file|shard",
            r"--dist-timeout|--dist-init-addr",
        ),
    ),
    Pair(
        "a time limit: of loading the weights, of a collective while serving",
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, None),
                *died(
                    "ValueError: TP rank 0 could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.",
                    ("model_executor/model_runner.py", 985, "load_model", "raise ValueError("),
                ),
            ),
            r"could finish the model loading",
            r"rank|other|node|log|disk|slow",
            r"--watchdog-timeout",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                *weights(78.4, 62.9),
                f"!{READY}",
                "Decode batch. #running-req: 12, #token: 41231, token usage: 0.21, cuda graph: True, gen throughput (token/s): 512.31, #queue-req: 0, ",
                "@[rank1]:[E1129 13:46:40.311004213 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4127, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
                "@[rank1]:[E1129 13:46:40.311904213 ProcessGroupNCCL.cpp:2090] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4127, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
                "@terminate called after throwing an instance of 'c10::DistBackendError'",
                "@Fatal Python error: Aborted",
                "!Received sigquit from a child process. It usually means the child failed.",
            ),
            r"Watchdog caught collective operation timeout",
            r"NCCL|rank|hang|P2P|py-spy|collective",
            r"--mem-fraction-static",
        ),
    ),
    Pair(
        "no GPU: the container has no driver, the driver is too old",
        Side(
            f"{MODEL}",
            main_died(
                "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
                ("utils/common.py", 41, "<module>", "import sgl_kernel"),
                site("sgl_kernel/__init__.py", 5, "<module>", "from sgl_kernel import common_ops"),
            ),
            r"libcuda\.so\.1",
            r"gpus all|--gpus|driver|runtime",
            r"--mem-fraction-static",
        ),
        Side(
            f"{MODEL}",
            main_died(
                "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver.",
                ("utils/common.py", 412, "get_device_name", "return torch.cuda.get_device_name(device_id)"),
                site("torch/cuda/__init__.py", 412, "_lazy_init", "torch._C._cuda_init()"),
            ),
            r"driver on your system is too old",
            r"driver|image|torch",
            r"gpus all",
        ),
    ),
    Pair(
        "no network interface: the name given to NCCL, the one Gloo chose",
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                "@gpu1:411:511 [0] transport/net_socket.cc:46 NCCL WARN NET/Socket : no interface found",
                "@gpu1:411:511 [0] bootstrap.cc:119 NCCL WARN Bootstrap : no socket interface found",
                *died(
                    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nBootstrap : no socket interface found",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                ),
            ),
            r"no socket interface found|no interface found",
            r"NCCL_SOCKET_IFNAME",
            r"env GLOO_SOCKET_IFNAME",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                *died(
                    "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ib9",
                    (
                        "distributed/parallel_state.py",
                        260,
                        "__init__",
                        'cpu_group = torch.distributed.new_group(ranks, backend="gloo")',
                    ),
                ),
            ),
            r"Unable to find address for|ifa != nullptr",
            r"GLOO_SOCKET_IFNAME",
            r"env NCCL_SOCKET_IFNAME",
        ),
    ),
    Pair(
        "too few GPUs: fewer visible than ranks, two ranks on one",
        Side(
            f"{MODEL} --tp 4",
            (
                "Init torch distributed begin.",
                *died(
                    "torch.AcceleratorError: CUDA error: invalid device ordinal\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
                    (
                        "model_executor/model_runner.py",
                        640,
                        "init_torch_distributed",
                        "torch.get_device_module(self.device).set_device(self.gpu_id)",
                    ),
                    site("torch/cuda/__init__.py", 567, "set_device", "torch._C._cuda_setDevice(device)"),
                ),
            ),
            r"invalid device ordinal",
            r"--tp(-size)? |CUDA_VISIBLE_DEVICES|gpus",
        ),
        Side(
            f"{MODEL} --tp 2",
            (
                "Init torch distributed begin.",
                "@gpu1:411:511 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
                *died(
                    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.27.5\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
                    (
                        "distributed/parallel_state.py",
                        1490,
                        "init_distributed_environment",
                        "torch.distributed.init_process_group(",
                    ),
                ),
            ),
            r"Duplicate GPU detected",
            r"--base-gpu-id|CUDA_VISIBLE_DEVICES|same GPU|--gpu-id-step|each rank",
        ),
    ),
)

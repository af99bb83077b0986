"""Private values in the forms in which they stand in logs, commands and files: (line, values that must be gone).

Every form is filled in with values of several shapes, so that more than 300 places come together.
"""

from __future__ import annotations

import itertools

# Made up; put together at run time so that no scanner of repositories takes them for real ones.
TOKENS = {
    "hf": "hf" + "_" + "QzVbNmAsDfGhJkLpOiUyTrEwQaZxSwEdCv",
    "openai": "sk" + "-" + "proj-4f9Qk2LmZx81BvNcTyUiOpAsDfGh",
    "aws": "AKIA" + "Q7RZ2MNB4XKV9TPL",
    "github": "ghp" + "_" + "9aQw8sEd7rFt6gYh5uJi4kOl3pZx2cVb1nM0",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiI0MjQyNDIifQ" + "." + "c2lnbmF0dXJlLW9mLXRoZS10b2tlbg",
    "gitlab": "glpat" + "-" + "Xy7Zk2Pq9Rt4Vw1Bn6Ms",
    "slack": "xoxb" + "-" + "314159265358-979323846264-QwErTyUiOpAs",
    "google": "AIza" + "SyB4nK2lM8pQ6rT0vX3zC5dF7hJ9kL1mN",
    "nvidia": "nvapi" + "-" + "Kp3Lm9Qr5St1Uv7Wx2Yz8Ab4Cd6Ef0Gh",
}
PASSWORDS = ("Tr0ub4dor&3x", "correct-horse-77", "pA55w0rd_9z")
AWS_SECRET = "wJa1rXUtnF3MI" + "/K7MDENG/bPx" + "RfiCYzQ8m4Kp2Lr"
SIGNATURE = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
SAS = "Zk3%2BvQ8xT1mB7nR5sY2wL9pD4cF6hJ0gK%2Fa8eU%3D"
EMAILS = ("jane.roe@acme-ml.io", "ops+gpu@corp.example.com", "m.meier@uni-example.de")
IPS4 = ("10.42.7.19", "192.168.77.5", "172.20.3.41", "203.0.113.77", "100.72.8.3")
IPS6 = ("fd12:3456:789a:1::1c", "2001:db8:85a3::8a2e:370:7334", "fe80::b859:9fff:fe03:d41")
HOSTS = ("gpu-node-17", "dgx04.hpc.acme.internal", "ip-10-42-7-19.ec2.internal", "titan-login3")
PODS = ("sglang-prefill-7d9c6b5f4d-x2k8p", "llm-serve-head-0")
USERS = ("jroe", "mmeier", "svc_llm7")
FOLDERS = ("acme-foundation", "projx_secret", "customer-ravenna")
PEM_BODY = (
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
    "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu",
    "Zk9pQ2xR7tV4wB8nM1==",
)

SECRET_FORMS = (
    "$ python -m sglang.launch_server --model-path Qwen/Qwen3-8B --api-key {v} --tp 2",
    "$ python -m sglang.launch_server --model-path Qwen/Qwen3-8B --api-key={v}",
    "server_args=ServerArgs(model_path='Qwen/Qwen3-8B', api_key='{v}', tp_size=2)",
    "HF_TOKEN={v} python -m sglang.launch_server --model-path Qwen/Qwen3-8B",
    'environment: {{"HF_TOKEN": "{v}", "NCCL_DEBUG": "INFO"}}',
    "      - OPENAI_API_KEY={v}",
    "  api_key: {v}",
    '{{"api_key": "{v}", "tp_size": 8}}',
    "Authorization: Bearer {v}",
    "[2026-01-01 10:00:00] headers={{'authorization': 'Bearer {v}', 'accept': '*/*'}}",
    "requests.exceptions.HTTPError: 401 Client Error: token {v} is not valid",
    '{{"log":"using token {v}\\n","stream":"stderr","time":"2026-01-01T10:00:00Z"}}',
)
PASSWORD_FORMS = (
    "cloning https://builder:{v}@git.acme-ml.io/llm/serve.git",
    "REDIS_URL=redis://default:{v}@cache.acme-ml.io:6379/0",
    "password: {v}",
    "password={v}",
    'db_password = "{v}"',
    "--ssl-keyfile-password {v}",
    "PGPASSWORD={v} psql -h db",
    "curl -u admin:{v} http://localhost:30000/health",
    '{{"passwd": "{v}"}}',
    "sshpass -p {v} ssh node",
)
EMAIL_FORMS = (
    "submitted by {v}",
    "mail={v},",
    "<{v}> asked for 8 GPUs",
    '"contact": "{v}"',
    "Author: Jane Roe <{v}>",
    "#SBATCH --mail-user={v}",
)
IP4_FORMS = (
    '[2026-01-01 10:00:00] INFO:     {v}:51234 - "POST /generate HTTP/1.1" 200 OK',
    "--dist-init-addr {v}:5000 --nnodes 2",
    "zmq.error.ZMQError: Cannot assign requested address (addr='tcp://{v}:20003')",
    "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of ({v}, 20000).",
    "node7:812:812 [0] NCCL INFO Bootstrap: Using eth0:{v}<0>",
    "(RayWorker pid=123, ip={v}) started",
    "MASTER_ADDR={v}",
    "inet {v}/24 brd 192.168.77.255 scope global eth0",
    "Connection refused by peer [{v}]:4213",
)
IP6_FORMS = (
    "--dist-init-addr [{v}]:5000",
    "listening on [{v}]:30000",
    "inet6 {v}/64 scope link",
    "peer {v} went away",
    "tcp://[{v}]:6000",
    "ip6={v} up",
)
HOST_FORMS = (
    "--dist-init-addr {v}:5000 --nnodes 2 --node-rank 0",
    "dist_init_addr='{v}:5000', nnodes=2",
    "Jan  2 10:11:12 {v} sglang[4242]: Traceback (most recent call last):",
    "2026-01-02T10:11:12+0000 {v} python3[77]: starting",
    "HOSTNAME={v}",
    '"hostname": "{v}", "pid": 7',
    "{v}:412:1290 [0] NCCL INFO NET/IB : No device found.",
    "srun: error: {v}: task 3: Exited with exit code 1",
    "slurmstepd: error: *** STEP 41.0 ON {v} CANCELLED AT 2026-01-01T00:00:00 ***",
    "SLURMD_NODENAME={v}",
    "connect to tcp://{v}:20000 failed",
    "root@{v}:/sgl-workspace# python -m sglang.launch_server",
    "nodeName: {v}",
    "HTTPConnectionPool(host='{v}', port=8998): Max retries exceeded",
    "getaddrinfo failed for '{v}': Name or service not known",
    "http://{v}:30000/health answered 503",
)
POD_FORMS = (
    "[pod/{v}/server] Traceback (most recent call last):",
    '"pod_name": "{v}"',
    'pods "{v}" is forbidden',
    "POD_NAME={v}",
    "kubectl logs says: pod={v} restarted",
)
USER_FORMS = (
    '  File "/home/{v}/serve/run.py", line 3, in <module>',
    "/Users/{v}/models/Qwen3-8B",
    "user={v} gpu=0",
    "USER={v}",
    "{v}@gpu-node-17:~$ python -m sglang.launch_server",
    "uid=1003({v}) gid=1003",
    "HOME=/home/{v}",
    r"C:\Users\{v}\models",
    "--model-path /home/{v}/Qwen3-8B",
)
PATH_FORMS = (
    "--model-path /data/{v}/Qwen3-32B",
    "model_path='/mnt/{v}/ckpt/Qwen3-32B'",
    "OSError: /nfs/models/{v} does not appear to have a file named config.json",
    "Loading from s3://{v}/weights/run",
    "FileNotFoundError: [Errno 2] No such file or directory: '/srv/{v}/adapters/a.safetensors'",
    "mount: /workspace/{v} on /dev/sda1",
    "--model-path /{v} --tp 2",
)
URL_FORMS = (
    "GET https://acme-models.s3.eu-west-1.amazonaws.com/w/model.safetensors?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + TOKENS["aws"]
    + "%2F20260101%2Feu&X-Amz-Signature=" + SIGNATURE,
    "fetch https://acme.blob.core.windows.net/w/model.bin?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig=" + SAS,
    "https://cdn-lfs.huggingface.co/repos/aa/bb?Expires=1&Policy=" + SIGNATURE + "&Signature=" + SIGNATURE + "&Key-Pair-Id=KA7RZ2MNB4XKV9",
)  # fmt: skip


def planted() -> list[tuple[str, tuple[str, ...]]]:
    """Lines and the values in them."""
    out: list[tuple[str, tuple[str, ...]]] = []
    for forms, values in (
        (SECRET_FORMS, tuple(TOKENS.values())),
        (PASSWORD_FORMS, PASSWORDS),
        (EMAIL_FORMS, EMAILS),
        (IP4_FORMS, IPS4),
        (IP6_FORMS, IPS6),
        (HOST_FORMS, HOSTS),
        (POD_FORMS, PODS),
        (USER_FORMS, USERS),
        (PATH_FORMS, FOLDERS),
    ):
        out += [(form.format(v=value), (value,)) for form, value in itertools.product(forms, values)]
    out += [(form, (SIGNATURE,) if SIGNATURE in form else (SAS,)) for form in URL_FORMS]
    out += [
        ("AWS_SECRET_ACCESS_KEY=" + AWS_SECRET, (AWS_SECRET,)),
        ('"secretAccessKey": "' + AWS_SECRET + '"', (AWS_SECRET,)),
    ]
    out.append(("-----BEGIN PRIVATE KEY-----", ()))
    out += [(line, (line,)) for line in PEM_BODY]
    out.append(("-----END PRIVATE KEY-----", ()))
    return out


# What must stay as it is: versions, shapes, error texts, code, public names, addresses of this machine itself.
KEPT = (
    "sglang 0.5.13.1 and sglang==0.5.13.post1 and sgl-kernel 0.3.21.0",
    "nvidia-cudnn-cu12==9.16.0.29 nvidia-cublas-cu12==12.8.4.1 nvidia-nccl-cu12 2.27.5.1",
    "CUDA version: 12.8.0.1, driver version 570.86.15, cuDNN 9.10.2.21",
    "Collecting nvidia-cusparselt-cu12==0.7.1.0",
    "/usr/local/cuda/lib64/libcublas.so.12.8.4.1: cannot open shared object file",
    "RuntimeError: shape '[1, 4096, 8, 128]' is invalid for input of size 4194304",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.11 GiB",
    '  File "/usr/local/lib/python3.12/dist-packages/sglang/srt/server_args.py", line 1234, in __post_init__',
    '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 3130, in run_scheduler_process',
    "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
    "host='0.0.0.0', port=30000, nccl_port=None, dist_init_addr=None",
    "[Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
    "listening on [::1]:30000 and [::]:30000",
    "--model-path Qwen/Qwen3.5-122B-A10B --speculative-draft-model-path lmsys/SGLang-EAGLE3-Llama-4",
    "OSError: meta-llama/Llama-3.1-8B is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
    "terminate called after throwing an instance of 'c10::Error' in at::native::copy_",
    "[2026-11-29 13:47:51 TP0] max_total_num_tokens=412345, chunked_prefill_size=8192, max_running_requests=48, context_len=40960",
    "eos_token_id=151645, pad_token='<|endoftext|>', tokenizer_mode='auto', skip_tokenizer_init=False",
    "Received sigquit from a child process. It usually means the child failed. Exit code: -9",
    "Capture cuda graph begin. This can take up to several minutes. avail mem=12.34 GB",
    "x = tensor[::2, 1:3]; lr=1e-4; 10:11:12; 3/4; and/or; 1.2.3",
    "https://github.com/sgl-project/sglang/issues/19391 https://docs.sglang.ai/advanced_features/server_arguments.html",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    "Config file not found at .../configs/triton_3_6_0/E=8,N=128,device_name=NVIDIA_H200.json",
    "KeyError: 'model.layers.0.mlp.experts.w2_weight'",
    "usage: launch_server.py [-h] --model-path MODEL_PATH [--host HOST] [--port PORT] [--api-key API_KEY]",
    "POST /v1/chat/completions HTTP/1.1 and GET /get_model_info",
)

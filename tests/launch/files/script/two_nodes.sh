#!/bin/bash
HEAD=10.0.0.1
if [ "$NODE_RANK" = 0 ]; then
    # the head
    GLOO_SOCKET_IFNAME=eth0 python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --nnodes 2 --node-rank 0 --dist-init-addr $HEAD:5000 --trust-remote-code
else
    GLOO_SOCKET_IFNAME=eth0 python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16 --nnodes 2 --node-rank 1 --dist-init-addr $HEAD:5000 --trust-remote-code
fi

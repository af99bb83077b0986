#!/bin/bash
IMAGE=lmsysorg/sglang:v0.5.9-cu129
docker pull "$IMAGE"
docker run -itd --rm --name sgl \
  --gpus '"device=0,1"' \
  --network host \
  --shm-size=64g \
  --ulimit memlock=-1 --ulimit stack=67108864 \
  -e NCCL_DEBUG=WARN \
  -e HF_HUB_OFFLINE \
  --env-file ./prod.env \
  -v /models:/models:ro \
  "$IMAGE" \
  python3 -m sglang.launch_server \
    --model-path /models/Qwen3-235B-A22B \
    --tp 8 \
    --served-model-name "qwen 3" \
    --trust-remote-code

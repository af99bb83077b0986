#!/bin/sh
MODEL_PATH=/data/models/glm-4.5
COMMON="--trust-remote-code --mem-fraction-static 0.8"
EXTRA_ARGS="--tp 8 $COMMON"
EXTRA_ARGS="$EXTRA_ARGS --attention-backend triton"

PYTHONUNBUFFERED=1 python3 -m sglang.launch_server --model-path ${MODEL_PATH} $EXTRA_ARGS --host 0.0.0.0 2>&1 | tee "server-`hostname`.log"

#!/usr/bin/env bash
# Start the server.
set -euo pipefail

export NCCL_IB_DISABLE=1          # no InfiniBand here
export SGLANG_LOG="it's fine"
MODEL=${1:-/models/Qwen3-32B}
PORT="${PORT:-30000}"

ARGS=(
  --model-path "$MODEL"           # where it lies
  --tp 4                          # four GPUs
  # --disable-cuda-graph
  --trust-remote-code
  --json-model-override-args '{"architectures": ["Qwen3ForCausalLM"]}'
)
if [[ -n "${DEBUG:-}" ]]; then
  ARGS+=(--enable-metrics)
fi

cat <<EOF
Starting with "${ARGS[*]}" isn't slow
python -m sglang.launch_server --model-path not-this-one
EOF

exec python3 -m sglang.launch_server "${ARGS[@]}" --port "$PORT" "$@"

source /opt/env.sh
CMD="python -m sglang.launch_server --model-path /models/m --tp 4"
CMD+=" --kv-cache-dtype fp8_e5m2"
# show it
echo "$CMD"
eval "$CMD"

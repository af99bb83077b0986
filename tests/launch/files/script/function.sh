#!/bin/bash
: "${MODEL:=Qwen/Qwen3-8B}"
serve() {
	local port=$1   # tabs in here
	CUDA_VISIBLE_DEVICES="$2" python -m sglang.launch_server --model-path "$MODEL" \
		--port "$port" --tp 2 \
		--trust-remote-code >"log.$port" 2>&1 &
}
serve 30000 0,1
serve 30001 2,3
wait

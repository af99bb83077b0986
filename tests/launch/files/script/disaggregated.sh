#!/bin/bash
export MC_TE_METRIC=true
python -m sglang.launch_server --model-path m --disaggregation-mode prefill --tp 4 --port 30000 &
python -m sglang.launch_server --model-path m --disaggregation-mode decode --tp 8 --port 30001 --base-gpu-id 4 &
python -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:30000 --decode http://127.0.0.1:30001

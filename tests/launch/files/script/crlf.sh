#!/bin/bash
export A=1
python -m sglang.launch_server \
  --model-path "x" \
  --tp 4 \
  --trust-remote-code

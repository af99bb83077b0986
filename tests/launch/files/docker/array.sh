RUN_OPTS=(
  --gpus all            # everything
  --shm-size 16g
  -e TZ=UTC
)
docker run "${RUN_OPTS[@]}" lmsysorg/sglang:v0.5.10 sglang serve --model-path Qwen/Qwen3-8B --tp 4 --trust-remote-code

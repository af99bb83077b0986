#!/bin/bash
#SBATCH --nodes=1
#SBATCH --exclusive
srun docker run --rm --gpus all \
     --shm-size 32g -e A=1 \
     lmsysorg/sglang:v0.5.9 \
     python3 -m sglang.launch_server --model-path m --tp 8

#!/bin/bash
#SBATCH --array=0-3
ARGS=(--model-path "/models/$SLURM_ARRAY_TASK_ID" --tp 4 --trust-remote-code)
export OMP_NUM_THREADS=4 NCCL_DEBUG=WARN
time srun --export=ALL python3 -m sglang.launch_server "${ARGS[@]}" &> "out.$SLURM_JOB_ID"
